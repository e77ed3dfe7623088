// What only a cluster has that is there: kubectl's views of a Pod, what one may do to it, and the ends it remembers.

import { History } from "./history";
import { views } from "./later";
import { Act } from "./pod_act";
import { Facts } from "./pod_facts";

Object.assign(views, { act: Act, facts: Facts, history: History });
