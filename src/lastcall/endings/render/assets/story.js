"use strict";
// Brings the still picture to life: play and scrub, zoom, true scale, the chosen record with its chain of causes.
(() => {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const SVG = "http://www.w3.org/2000/svg";
  document.documentElement.classList.add("js");
  // What this script says, in the page's language.
  const words = JSON.parse(document.body.dataset.words || "{}");
  const t = (english) => words[english] || english;

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === true) element.setAttribute(key, "");
      else if (value !== false && value != null) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child != null));
    return element;
  };
  const shape = (name, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const percent = (share) => `${+(share * 100).toFixed(3)}%`;
  const when = (at) => {
    const sign = at < 0 ? "-" : "+";
    const size = Math.abs(at);
    if (size < 0.9995) return `${sign}${(size * 1000).toFixed(size >= 0.1 ? 0 : 1)} ms`;
    return `${sign}${size.toFixed(3)} s`;
  };

  // Piecewise straight from one list of numbers to another, both ascending.
  const between = (from, to) => (value) => {
    const last = from.length - 1;
    if (value <= from[0]) return to[0];
    if (value >= from[last]) return to[last];
    let low = 0;
    let high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (from[middle] <= value) low = middle;
      else high = middle;
    }
    return to[low] + ((to[high] - to[low]) * (value - from[low])) / (from[high] - from[low]);
  };

  const label = (at) => {
    if (at === 0) return "0";
    const size = Math.abs(at);
    if (size < 0.9995) return `${+(at * 1000).toFixed(3)} ms`;
    if (size >= 600 && at % 60 === 0) return `${at / 60} min`;
    return `${+at.toFixed(3)} s`;
  };

  // A word beside a mark, to its left where there is no room to its right.
  const turn = (word, left) => {
    word.setAttribute("x", left ? -14 : 14);
    word.setAttribute("text-anchor", left ? "end" : "start");
  };

  // True to scale: one step all along.
  const even = (place, start, end, most) => {
    const length = end - start;
    let step = 1e-4;
    for (let index = 0; length / step > most; index++) step *= [2, 2.5, 2][index % 3];
    const chosen = [];
    for (let index = Math.ceil(start / step); index * step <= end; index++) {
      const at = +(index * step).toFixed(9);
      chosen.push({ at, x: place(at) });
    }
    return chosen;
  };

  // The more digits a mark has, the more room it needs.
  const digits = (at) => String(Math.abs(at)).replace(".", "").replace(/^0+|0+$/g, "").length;
  const room = [1, 1, 1.3, 2, 3];

  // Round numbers first, finer ones where the axis leaves room for them: the same rule as the still picture's.
  const ticks = (place, start, end, most) => {
    const chosen = [];
    const length = end - start;
    for (let power = 1e6; power >= 1e-4; power /= 10) {
      for (const factor of [5, 2, 1]) {
        const step = power * factor;
        if (step > length || step < length / 1e5) continue;
        const first = Math.ceil(start / step - 1e-9);
        const last = Math.floor(end / step + 1e-9);
        if (last - first > 20 * most) return chosen;
        for (let index = first; index <= last; index++) {
          const at = +(index * step).toFixed(9);
          const x = place(at);
          const apart = (room[digits(at)] || 4) / most;
          if (chosen.every((other) => Math.abs(other.x - x) >= apart)) chosen.push({ at, x });
        }
      }
    }
    return chosen;
  };

  class Timeline {
    constructor(pod) {
      this.pod = pod;
      this.figure = pod.querySelector(".timeline");
      this.view = pod.querySelector(".view");
      this.plot = pod.querySelector(".plot");
      this.card = pod.querySelector(".card");
      this.log = pod.querySelector(".log");
      const [times, places] = JSON.parse(this.plot.dataset.axis);
      this.times = times;
      this.start = times[0];
      this.end = times[times.length - 1];
      this.adaptive = between(times, places);
      this.back = between(places, times);
      const ends = [places[0], places[places.length - 1]];
      this.exact = between([this.start, this.end], ends);
      this.exactBack = between(ends, [this.start, this.end]);
      this.place = this.adaptive;
      this.zoom = 1;
      this.chosen = null;
      this.frame = 0;
      this.marks = [...this.plot.querySelectorAll(".m")]
        .map((element) => this.readMark(element))
        .sort((a, b) => a.number - b.number);
      this.byNumber = new Map(this.marks.map((mark) => [mark.number, mark]));
      this.arrows = [...this.plot.querySelectorAll(".arrow")].map((element) => ({
        element,
        from: this.byNumber.get(+element.dataset.a),
        to: this.byNumber.get(+element.dataset.b),
      }));
      for (const { from, to } of this.arrows) {
        to.cause = from;
        from.effects.push(to);
      }
      this.entries = this.log ? [...this.log.children].filter((line) => line.dataset.t) : [];
      this.shownLines = this.entries.length;
      this.build();
      this.listen();
      this.now = this.end;
      this.show(this.end, false);
      this.hint();
    }

    readMark(element) {
      // The title becomes the name: a card says more than the browser's own tooltip.
      const title = element.querySelector("title");
      element.setAttribute("aria-label", title.textContent);
      title.remove();
      return {
        element,
        number: +element.dataset.n,
        at: +element.dataset.t,
        y: +element.querySelector("use").getAttribute("y"),
        row: document.getElementById(element.getAttribute("href").slice(1)),
        cause: null,
        effects: [],
      };
    }

    build() {
      const bar = this.figure.querySelector(".transport");
      this.button = make("button", { type: "button", class: "play" }, t("▶ Play"));
      this.clock = make("span", { class: "clock" });
      const back = make("button", { type: "button", "aria-label": t("Previous record") }, "‹");
      const next = make("button", { type: "button", "aria-label": t("Next record") }, "›");
      back.onclick = () => this.step(-1);
      next.onclick = () => this.step(1);
      this.speed = make("select", { "aria-label": t("Speed") });
      for (const [value, text] of [["story", t("story pace")], ["1", t("real time")], ["4", t("4 × faster")], ["0.1", t("10 × slower")], ["0.01", t("100 × slower")]]) {
        this.speed.append(make("option", { value }, text));
      }
      this.scale = make("input", { type: "checkbox" });
      const out = make("button", { type: "button", "aria-label": t("Zoom out") }, "−");
      const inwards = make("button", { type: "button", "aria-label": t("Zoom in") }, "+");
      const fit = make("button", { type: "button" }, t("Fit"));
      out.onclick = () => this.setZoom(this.zoom / 1.5);
      inwards.onclick = () => this.setZoom(this.zoom * 1.5);
      fit.onclick = () => this.setZoom(1);
      this.scale.onchange = () => this.setScale(this.scale.checked);
      bar.append(this.button, back, next, this.speed, this.clock, make("span", { class: "gap" }),
        make("label", {}, this.scale, t("true to scale")), out, inwards, fit);
      this.said = make("p", { class: "said" });
      this.scrub = make("input", { type: "range", class: "scrub", min: 0, max: 1000, step: 1, value: 1000, "aria-label": t("Time") });
      bar.after(this.said, this.scrub);
      this.future = shape("rect", { class: "future", y: 18, height: "100%", x: "100%", width: "0%" });
      this.head = shape("line", { class: "playhead", y1: 18, y2: "100%", x1: "100%", x2: "100%" });
      this.plot.append(this.future, this.head);
    }

    listen() {
      this.button.onclick = () => (this.frame ? this.stop() : this.play());
      this.scrub.oninput = () => {
        this.stop();
        this.show(this.timeAt(this.scrub.value / 1000));
      };
      for (const mark of this.marks) {
        mark.element.addEventListener("mouseenter", () => this.describe(mark));
        mark.element.addEventListener("mouseleave", () => (this.chosen ? this.describe(this.chosen) : this.hint()));
        mark.element.addEventListener("focus", () => this.choose(mark));
        mark.element.addEventListener("click", (event) => {
          event.preventDefault();
          mark.element.focus({ preventScroll: true });
          this.choose(mark);
        });
      }
      this.plot.addEventListener("pointerdown", (event) => {
        if (event.button !== 0 || event.target.closest(".m")) return;
        const move = (to) => {
          const box = this.plot.getBoundingClientRect();
          this.stop();
          this.show(this.timeAt(clamp((to.clientX - box.left) / box.width, 0, 1)));
        };
        if (event.clientY - this.plot.getBoundingClientRect().top > 34) return;
        move(event);
        this.plot.setPointerCapture(event.pointerId);
        this.plot.onpointermove = move;
        this.plot.onpointerup = () => (this.plot.onpointermove = null);
      });
      this.view.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.setZoom(this.zoom * Math.exp(-event.deltaY / 300), event.clientX);
      }, { passive: false });
      this.figure.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.drawAxis()).observe(this.plot);
    }

    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const field = event.target.matches("input, select");
      const press = event.target.matches("button");
      const run = {
        " ": () => (field || press ? null : () => this.button.click()),
        ArrowRight: () => (field ? null : () => this.step(1)),
        ArrowLeft: () => (field ? null : () => this.step(-1)),
        ArrowDown: () => (field ? null : () => this.hop(1)),
        ArrowUp: () => (field ? null : () => this.hop(-1)),
        Home: () => (field ? null : () => this.go(this.marks[0])),
        End: () => (field ? null : () => this.go(this.marks[this.marks.length - 1])),
        "+": () => () => this.setZoom(this.zoom * 1.5),
        "=": () => () => this.setZoom(this.zoom * 1.5),
        "-": () => () => this.setZoom(this.zoom / 1.5),
        Escape: () => () => this.unchoose(),
      }[event.key];
      const action = run && run();
      if (!action) return;
      event.preventDefault();
      action();
    }

    // -- choosing a record

    go(mark) {
      if (!mark) return;
      this.stop();
      this.show(mark.at, false);
      mark.element.focus({ preventScroll: true });
      this.choose(mark);
      this.reveal(this.place(mark.at));
    }

    step(by) {
      const from = this.chosen ? this.marks.indexOf(this.chosen)
        : by > 0 ? this.marks.findLastIndex((mark) => mark.at <= this.now && this.now < this.end)
        : this.marks.findIndex((mark) => mark.at > this.now) >>> 0 || this.marks.length;
      this.go(this.marks[clamp((from >= this.marks.length ? this.marks.length : from) + by, 0, this.marks.length - 1)]);
    }

    // To the nearest record above or below.
    hop(by) {
      if (!this.chosen) return this.step(1);
      const { y, at } = this.chosen;
      const there = this.marks.filter((mark) => (mark.y - y) * by > 8);
      if (!there.length) return;
      const row = there.reduce((best, mark) => (Math.abs(mark.y - y) < Math.abs(best - y) ? mark.y : best), there[0].y);
      const near = there.filter((mark) => Math.abs(mark.y - row) < 9);
      const x = this.place(at);
      this.go(near.reduce((best, mark) => (Math.abs(this.place(mark.at) - x) < Math.abs(this.place(best.at) - x) ? mark : best)));
    }

    choose(mark) {
      this.unchoose(false);
      this.chosen = mark;
      mark.element.classList.add("chosen");
      if (mark.row) mark.row.classList.add("chosen");
      this.describe(mark);
    }

    unchoose(hint = true) {
      if (this.chosen) {
        this.chosen.element.classList.remove("chosen");
        if (this.chosen.row) this.chosen.row.classList.remove("chosen");
      }
      this.chosen = null;
      if (hint) this.hint();
    }

    hint() {
      this.chain(null);
      this.card.replaceChildren(
        make("h4", {}, t("Records")),
        make("p", { class: "hint" }, t("Point at a mark, or walk through them with ← → ↑ ↓. Space plays, + and − zoom, a drag along the time axis scrubs.")),
      );
    }

    // Everything that led to a record, and what it led to directly.
    chain(mark) {
      const on = new Set();
      for (let each = mark; each && !on.has(each); each = each.cause) on.add(each);
      const back = new Set(on);
      if (mark) mark.effects.forEach((effect) => on.add(effect));
      for (const each of this.marks) each.element.classList.toggle("on-chain", on.has(each));
      for (const { element, from, to } of this.arrows) {
        element.classList.toggle("on-chain", mark !== null && ((back.has(from) && back.has(to)) || from === mark));
      }
    }

    describe(mark) {
      this.chain(mark);
      const cells = mark.row ? mark.row.cells : null;
      if (!cells) return;
      const text = (cell, selector) => (cell.querySelector(selector) || {}).textContent || "";
      const link = (other) => {
        const anchor = make("a", { href: `#${other.row ? other.row.id : ""}` }, String(other.number));
        anchor.onclick = (event) => {
          event.preventDefault();
          this.go(other);
        };
        return anchor;
      };
      const facts = make("dl");
      for (const fact of text(cells[3], ".facts").split(" · ").filter(Boolean)) {
        const space = fact.indexOf(" ");
        facts.append(make("dt", {}, fact.slice(0, space)), make("dd", {}, fact.slice(space + 1)));
      }
      const causes = make("p", { class: "sub" });
      if (mark.cause) causes.append(t("because of "), link(mark.cause));
      if (mark.effects.length) {
        causes.append(mark.cause ? t(", led to ") : t("led to "));
        mark.effects.forEach((effect, index) => causes.append(index ? ", " : "", link(effect)));
      }
      const rule = cells[4].querySelector(".rule");
      const entry = rule && document.getElementById(rule.getAttribute("href").slice(1));
      const evidence = text(cells[4], "em") || t("observed");
      const parts = [
        make("h4", {}, `${mark.number}. ${text(cells[3], ".w")}`),
        make("p", { class: "sub" }, `${when(mark.at)} · ${[...cells[2].childNodes].map((node) => node.textContent).join(" ")} · ${evidence}`),
        causes.hasChildNodes() ? causes : null,
        facts.hasChildNodes() ? facts : null,
        entry ? make("div", { class: "law" }, make("p", {}, entry.querySelector("dd").textContent), entry.querySelector("code").cloneNode(true)) : null,
      ];
      this.card.replaceChildren(...parts.filter(Boolean));
    }

    // -- time

    timeAt(share) {
      return (this.place === this.adaptive ? this.back : this.exactBack)(share);
    }

    show(at, moving = true) {
      this.now = clamp(at, this.start, this.end);
      const x = this.place(this.now);
      const done = this.now >= this.end;
      this.head.setAttribute("x1", percent(x));
      this.head.setAttribute("x2", percent(x));
      this.future.setAttribute("x", percent(x));
      this.future.setAttribute("width", percent(done ? 0 : 1 - x));
      this.clock.textContent = when(this.now);
      let last = null;
      for (const mark of this.marks) {
        if (mark.at > this.now + 1e-6) break;
        if (!mark.element.classList.contains("g-detail")) last = mark;
      }
      const words = last ? last.element.getAttribute("aria-label") : "";
      this.said.replaceChildren(make("b", {}, last ? words.slice(0, words.indexOf(". ") + 1) : ""), words.slice(words.indexOf(". ") + 1));
      this.scrub.value = Math.round(x * 1000);
      this.scrub.setAttribute("aria-valuetext", `${when(this.now)}. ${words}`);
      let lines = this.entries.findIndex((line) => +line.dataset.t > this.now + 1e-6);
      if (lines < 0) lines = this.entries.length;
      for (let index = Math.min(lines, this.shownLines); index < Math.max(lines, this.shownLines); index++) {
        this.entries[index].classList.toggle("later", index >= lines);
      }
      this.shownLines = lines;
      if (moving && this.log && lines) {
        const line = this.entries[lines - 1];
        const top = line.offsetTop - this.log.offsetTop;
        if (top < this.log.scrollTop || top > this.log.scrollTop + this.log.clientHeight - 24) this.log.scrollTop = top - this.log.clientHeight / 2;
      }
    }

    play() {
      if (this.now >= this.end) this.show(this.start);
      this.unchoose();
      this.button.textContent = t("❚❚ Pause");
      let before = performance.now();
      const beat = (time) => {
        const passed = (time - before) / 1000;
        if (calm.matches) {
          // No gliding: from one record to the next.
          if (passed >= 0.9) {
            before = time;
            const next = this.marks.find((mark) => mark.at > this.now + 1e-6);
            this.show(next ? next.at : this.end);
          }
        } else {
          before = time;
          const pace = this.speed.value;
          const length = 14 + this.marks.length / 8;
          if (pace === "story") this.show(this.timeAtPace(passed / length));
          else this.show(this.now + passed * +pace);
          this.reveal(this.place(this.now));
        }
        if (this.now >= this.end) this.stop();
        else this.frame = requestAnimationFrame(beat);
      };
      this.frame = requestAnimationFrame(beat);
    }

    // Story pace: as fast over the picture everywhere, so waits pass quickly and bursts slowly, in either scale.
    timeAtPace(by) {
      return this.back(Math.min(1, this.adaptive(this.now) + by));
    }

    stop() {
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      this.button.textContent = t("▶ Play");
    }

    // -- scale and zoom

    setScale(exact) {
      this.place = exact ? this.exact : this.adaptive;
      for (const element of this.plot.querySelectorAll("[data-t]")) {
        const x = percent(this.place(+element.dataset.t));
        if (element.tagName === "line") {
          element.setAttribute("x1", x);
          element.setAttribute("x2", x);
        } else if (element.tagName === "svg") element.setAttribute("x", x);
        else for (const part of element.children) {
          if (part.tagName === "line") {
            part.setAttribute("x1", x);
            part.setAttribute("x2", x);
          } else if (part.hasAttribute("x")) part.setAttribute("x", x);
          if (part.tagName === "svg") turn(part.firstElementChild, this.place(+element.dataset.t) > 0.9);
        }
      }
      for (const bar of this.plot.querySelectorAll("rect[data-a], .clip")) {
        const x = this.place(+bar.dataset.a);
        bar.setAttribute("x", percent(x));
        bar.setAttribute("width", percent(this.place(+bar.dataset.b) - x));
      }
      for (const { element, from, to } of this.arrows) {
        element.setAttribute("x1", percent(this.place(from.at)));
        element.setAttribute("x2", percent(this.place(to.at)));
      }
      this.drawAxis();
      this.show(this.now, false);
    }

    setZoom(zoom, clientX) {
      const box = this.view.getBoundingClientRect();
      const anchor = clientX === undefined ? box.left + box.width / 2 : clientX;
      const share = (anchor - this.plot.getBoundingClientRect().left) / this.plot.getBoundingClientRect().width;
      this.zoom = clamp(zoom, 1, 200);
      this.plot.style.width = this.zoom === 1 ? "" : `${this.zoom * 100}%`;
      this.view.scrollLeft = share * this.plot.getBoundingClientRect().width - (anchor - box.left);
    }

    reveal(x) {
      const at = x * this.plot.getBoundingClientRect().width;
      const { scrollLeft, clientWidth } = this.view;
      if (at < scrollLeft + 30 || at > scrollLeft + clientWidth - 60) this.view.scrollLeft = at - clientWidth / 2;
    }

    drawAxis() {
      const axis = this.plot.querySelector(".axis");
      const width = this.plot.getBoundingClientRect().width;
      if (!width) return;
      const height = this.plot.getAttribute("height");
      const parts = [];
      const rule = this.place === this.exact ? even : ticks;
      const marks = rule(this.place, this.start, this.end, clamp(width / 84, 4, 300));
      for (const { at, x } of marks) {
        const line = shape("line", { x1: percent(x), x2: percent(x), y1: 22, y2: height });
        if (at === 0) line.setAttribute("class", "zero");
        const text = shape("text", { x: percent(x), y: 15 });
        if (x < 0.03) text.setAttribute("text-anchor", "start");
        if (x > 0.97) text.setAttribute("text-anchor", "end");
        text.textContent = label(at);
        parts.push(line, text);
      }
      axis.replaceChildren(...parts);
    }
  }

  for (const pod of document.querySelectorAll(".pod")) new Timeline(pod);
})();
