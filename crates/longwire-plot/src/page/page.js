"use strict";
// Zoom, cursor and tooltip of the charts. Without this script, the charts are complete.
(() => {
  const TIME = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  const SVG = "http://www.w3.org/2000/svg";
  const unitOf = (units, high) =>
    [...units].reverse().find(([factor]) => factor <= Math.abs(high)) || units[0];
  const digits = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
  const written = (value, units) => {
    const [factor, name] = unitOf(units, value * 1.0005);
    return digits(value / factor) + (name ? " " + name : "");
  };
  const ticks = (low, high, count) => {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((mark) => mark * power).find((mark) => mark >= rough * 0.999);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9); at++) found.push(at * step || 0);
    return found;
  };
  const add = (parent, name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const charts = [...document.querySelectorAll("svg.frame")].map((frame) => {
    const data = JSON.parse(frame.parentNode.querySelector("script").textContent);
    const plot = frame.querySelector(".plot");
    const box = Object.fromEntries(["x", "y", "width", "height"].map((key) => [key, +plot.getAttribute(key)]));
    const [, , steps, full] = plot.getAttribute("viewBox").split(" ").map(Number);
    return { frame, data, plot, box, steps, full, span: steps * data.step };
  });
  if (!charts.length) return;
  const whole = [0, Math.max(...charts.map((chart) => chart.span))];
  let view = whole;

  // Shows the part of the time that is in view, with the values in it.
  const draw = (chart) => {
    const { data, plot, box, frame, full } = chart;
    const [from, until] = view === whole ? [0, chart.span] : view;
    const [first, last] = [from / data.step, until / data.step];
    let most = 0;
    if (view === whole) most = full;
    else {
      for (const line of data.lines) {
        for (let at = Math.max(0, Math.floor(first)); at < Math.min(line.v.length, Math.ceil(last)); at++) {
          if (line.v[at] > most) most = line.v[at];
        }
      }
      most = Math.min(full, most * 1.06 || full);
    }
    chart.shown = [from, until];
    plot.setAttribute("viewBox", `${first} ${full - most} ${last - first} ${most}`);
    const [tx, ty, marks] = ["tx", "ty", "marks"].map((name) => frame.querySelector("." + name));
    tx.replaceChildren();
    ty.replaceChildren();
    marks.replaceChildren();
    const place = (at) => box.x + (box.width * (at - from)) / (until - from);
    const [factor, name] = unitOf(TIME, until);
    for (const tick of ticks(from / factor, until / factor, 9)) {
      add(tx, "text", { x: place(tick * factor), y: box.y + box.height + 15 }, digits(tick));
    }
    frame.querySelector(".xu").textContent = `time (${name})`;
    for (const [at, label] of data.marks) {
      if (at >= from && at <= until) add(marks, "text", { x: place(at), y: box.y - 3 }, label);
    }
    const high = most * data.unit;
    const [scale, unit] = unitOf(data.units, high);
    for (const tick of ticks(0, high / scale, 4)) {
      const y = box.y + box.height * (1 - (tick * scale) / high);
      add(ty, "path", { class: "grid", d: `M${box.x} ${y}H${box.x + box.width}` });
      add(ty, "text", { x: box.x - 6, y: y + 4 }, digits(tick));
    }
    frame.querySelector(".yu").textContent = unit;
  };
  const zoom = (from, until) => {
    const least = Math.min(...charts.map((chart) => chart.data.step)) * 4;
    from = Math.max(whole[0], from);
    until = Math.min(whole[1], Math.max(until, from + least));
    view = until - from >= whole[1] * 0.999 ? whole : [from, until];
    charts.forEach(draw);
  };

  // The time below a pointer.
  const timeAt = (chart, event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.frame.getScreenCTM().inverse());
    const share = Math.min(1, Math.max(0, (point.x - chart.box.x) / chart.box.width));
    const [from, until] = chart.shown || [0, chart.span];
    return from + share * (until - from);
  };
  let cursor = null;
  const hide = () => {
    tip.hidden = true;
    document.querySelectorAll(".cursor").forEach((line) => line.remove());
  };
  const show = (chart, time, left, top) => {
    hide();
    cursor = time;
    for (const other of charts) {
      const [from, until] = other.shown || [0, other.span];
      if (time < from || time > until) continue;
      const x = other.box.x + (other.box.width * (time - from)) / (until - from);
      add(other.frame, "path", { class: "cursor", d: `M${x} ${other.box.y}v${other.box.height}` });
    }
    const at = Math.min(chart.data.lines[0].v.length - 1, Math.floor(time / chart.data.step));
    tip.replaceChildren();
    const row = (text, key) => {
      const line = document.createElement("div");
      if (key) {
        const swatch = document.createElement("i");
        swatch.className = "key " + key;
        line.append(swatch);
      }
      line.append(text);
      tip.append(line);
    };
    row(written(at * chart.data.step, TIME));
    for (const line of chart.data.lines) {
      const value = line.v[at];
      row(`${line.n}: ${value === null ? "–" : written(value * chart.data.unit, chart.data.units)}`, line.c);
    }
    tip.hidden = false;
    const wide = tip.offsetWidth;
    tip.style.left = (left + 16 + wide > innerWidth ? left - wide - 12 : left + 16) + "px";
    tip.style.top = Math.max(4, Math.min(innerHeight - tip.offsetHeight - 4, top + 12)) + "px";
  };

  for (const chart of charts) {
    const { frame, box } = chart;
    let begin = null;
    let brush = null;
    frame.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      begin = timeAt(chart, event);
      if (event.pointerType === "mouse") frame.setPointerCapture(event.pointerId);
    });
    frame.addEventListener("pointermove", (event) => {
      const time = timeAt(chart, event);
      show(chart, time, event.clientX, event.clientY);
      if (begin === null) return;
      const [from, until] = chart.shown || [0, chart.span];
      const place = (at) => box.x + (box.width * (at - from)) / (until - from);
      const [low, high] = [place(begin), place(time)].sort((a, b) => a - b);
      brush = brush || add(frame, "rect", { class: "brush", y: box.y, height: box.height });
      brush.setAttribute("x", low);
      brush.setAttribute("width", high - low);
    });
    const end = (event, zooms) => {
      if (brush) brush.remove();
      const [low, high] = [begin, timeAt(chart, event)].sort((a, b) => a - b);
      const [from, until] = chart.shown || [0, chart.span];
      if (zooms && brush && high - low > (until - from) * 0.01) zoom(low, high);
      begin = brush = null;
    };
    frame.addEventListener("pointerup", (event) => begin !== null && end(event, true));
    frame.addEventListener("pointercancel", (event) => begin !== null && end(event, false));
    frame.addEventListener("pointerleave", () => begin === null && hide());
    frame.addEventListener("dblclick", () => zoom(...whole));
    frame.addEventListener("blur", hide);
    frame.addEventListener("keydown", (event) => {
      const [from, until] = chart.shown || [0, chart.span];
      const middle = cursor !== null && cursor >= from && cursor <= until ? cursor : (from + until) / 2;
      const span = until - from;
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (move) {
        const time = Math.min(until, Math.max(from, middle + move * Math.max(chart.data.step, span / 100)));
        const rect = frame.getBoundingClientRect();
        const x = rect.left + (rect.width * (box.x + (box.width * (time - from)) / span)) / frame.viewBox.baseVal.width;
        show(chart, time, x, rect.top + 20);
      } else if (event.key === "+" || event.key === "=") zoom(middle - span / 4, middle + span / 4);
      else if (event.key === "-") zoom(middle - span, middle + span);
      else if (event.key === "0" || event.key === "Escape") (zoom(...whole), hide());
      else return;
      event.preventDefault();
    });
  }
})();
