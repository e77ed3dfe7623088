from .agents import NodeAgents as NodeAgents
from .job import DEFAULT_IMAGE as DEFAULT_IMAGE
from .options import AgentOptions as AgentOptions
