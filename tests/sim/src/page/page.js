// Draws the lanes of a run. All that it shows comes from the JSON beside it and goes out as text, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("run").textContent);
  const { lanes, spans } = data;
  // An entry is [microseconds, lane, kind, lane of its object or -1, words].
  const entries = data.entries.map(([at, lane, kind, key, text], n) => ({ n, at, lane, kind, key, text }));
  const byId = (id) => document.getElementById(id);
  const [canvas, box, tip, log, find] = ["canvas", "lanes", "tip", "log", "find"].map(byId);
  const cx = canvas.getContext("2d");
  const LABELS = 250, AXIS = 24, ROW = 24, SUB = 8, RIGHT = 24;
  const end = Math.max(1, ...entries.slice(-1).map((e) => e.at));

  // Two scales: true time, and squeezed time, where a pause counts with its logarithm.
  const times = [...new Set(entries.map((e) => e.at))].sort((a, b) => a - b);
  if (times[0] !== 0) times.unshift(0);
  const squeezed = [0];
  for (let i = 1; i < times.length; i++) {
    squeezed.push(squeezed[i - 1] + 4 + 3 * Math.log2(1 + (times[i] - times[i - 1]) / 50));
  }
  const below = (list, value) => {
    let [low, high] = [0, list.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (list[middle] <= value) low = middle; else high = middle - 1;
    }
    return low;
  };
  const between = (from, to, value) => {
    const i = below(from, value), j = Math.min(i + 1, from.length - 1);
    const share = from[j] > from[i] ? (value - from[i]) / (from[j] - from[i]) : 0;
    return to[i] + Math.min(1, Math.max(0, share)) * (to[j] - to[i]);
  };
  let isSqueezed = true;
  const length = () => (isSqueezed ? Math.max(1, squeezed[squeezed.length - 1]) : end);
  const placeOf = (at) => (isSqueezed ? between(times, squeezed, at) : at);
  const timeAt = (place) => (isSqueezed ? between(squeezed, times, place) : Math.min(end, Math.max(0, place)));

  // What is in view: `zoom` pixels for a unit of the scale, from `left` on.
  let width = 800, zoom = 1, left = 0, chosen = -1, words = "";
  const inner = () => width - LABELS - RIGHT;
  const fit = () => { zoom = inner() / length(); left = 0; };
  const xOf = (at) => LABELS + (placeOf(at) - left) * zoom;
  const keep = () => {
    zoom = Math.min(Math.max(zoom, inner() / length()), isSqueezed ? 40 : 1);
    left = Math.min(Math.max(left, 0), Math.max(0, length() - inner() / zoom));
  };
  const zoomBy = (factor, x = LABELS + inner() / 2) => {
    const place = left + (x - LABELS) / zoom;
    zoom *= factor;
    keep();
    left = place - (x - LABELS) / zoom;
    keep();
    draw();
  };

  // Bars of a lane that are there at the same time lie in rows of their own.
  const rows = lanes.map(() => 1);
  const free = lanes.map(() => []);
  for (const span of spans) {
    if (span.kind !== "run") continue;
    const taken = free[span.lane];
    let row = taken.findIndex((until) => until < span.from);
    if (row < 0) row = taken.length;
    span.row = Math.min(row, 5);
    taken[span.row] = span.to;
    rows[span.lane] = Math.max(rows[span.lane], span.row + 1);
  }
  const tops = [];
  let height = AXIS;
  lanes.forEach((lane, i) => { tops.push(height); height += ROW + (rows[i] - 1) * SUB; });

  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue("--" + name).trim();
  const LOUD = new Set(["strikes", "heals", "starts", "dies", "stands", "goes-on", "down", "back", "changes", "creates",
    "updates", "deletes", "fails", "violated"]);
  const COLOR = { fault: "fault", cluster: "outside", replica: "replica", server: "server", object: "object" };
  const paint = (entry, lane) => {
    if (entry.kind === "violated" || entry.kind === "fails") return color("failed");
    if (entry.kind === "strikes") return color("fault");
    return color(COLOR[lanes[lane].kind]);
  };
  const matches = (entry) => !words || (entry.text + " " + lanes[entry.lane].name).toLowerCase().includes(words);
  const seconds = (at, digits = 6) => (at / 1e6).toFixed(digits);

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    cx.setTransform(ratio, 0, 0, ratio, 0, 0);
    cx.fillStyle = color("back");
    cx.fillRect(0, 0, width, height);
    cx.save();
    cx.beginPath();
    cx.rect(LABELS - 8, 0, width - LABELS + 8, height);
    cx.clip();
    drawGrid();
    drawSpans();
    drawEntries();
    cx.restore();
    drawLabels();
  }

  function drawGrid() {
    lanes.forEach((lane, i) => {
      if (i % 2) { cx.fillStyle = color("faint"); cx.globalAlpha = 0.5; cx.fillRect(LABELS, tops[i], width, bottom(i) - tops[i]); }
    });
    cx.globalAlpha = 1;
    cx.font = "11px ui-monospace, 'DejaVu Sans Mono', monospace";
    cx.textBaseline = "middle";
    let last = "";
    for (let x = LABELS; x < width - 60; x += 110) {
      const at = timeAt(left + (x - LABELS) / zoom);
      const step = timeAt(left + (x + 110 - LABELS) / zoom) - at;
      const text = seconds(at, step > 2e6 ? 0 : step > 2e4 ? 2 : step > 2e3 ? 3 : 6) + " s";
      cx.fillStyle = color("line");
      cx.fillRect(x, AXIS - 5, 1, height);
      cx.fillStyle = color("soft");
      if (text !== last) cx.fillText(text, x + 4, AXIS / 2);
      last = text;
    }
  }

  const bottom = (i) => (i + 1 < tops.length ? tops[i + 1] : height);

  function drawSpans() {
    for (const span of spans) {
      const from = xOf(span.from), to = Math.max(xOf(span.to), from + 2);
      if (to < LABELS || from > width) continue;
      const [top, low] = [tops[span.lane], bottom(span.lane)];
      if (span.kind === "fault") {
        cx.globalAlpha = 0.06;
        cx.fillStyle = color("fault");
        cx.fillRect(from, AXIS, to - from, height);
        cx.globalAlpha = 0.6;
        cx.fillRect(from, top + 5, to - from, low - top - 10);
      } else if (span.kind === "life" || span.kind === "exists") {
        cx.globalAlpha = 0.16;
        cx.fillStyle = color(COLOR[lanes[span.lane].kind]);
        cx.fillRect(from, top + 2, to - from, low - top - 4);
      } else if (span.kind === "still" || span.kind === "down") {
        cx.globalAlpha = 0.35;
        cx.fillStyle = color("soft");
        cx.fillRect(from, top + 2, to - from, low - top - 4);
      } else {
        cx.globalAlpha = 0.75;
        cx.fillStyle = span.ill ? color("failed") : color("replica");
        cx.fillRect(from, top + ROW / 2 + 3 + span.row * SUB, to - from, 5);
      }
    }
    cx.globalAlpha = 1;
  }

  // Where an entry is drawn: in its lane, and in that of its object.
  const placesOf = (entry) => (entry.key < 0 || entry.key === entry.lane ? [entry.lane] : [entry.lane, entry.key]);
  const yOf = (entry, lane) => tops[lane] + ROW / 2 - (lanes[lane].kind === "replica" || lanes[lane].kind === "object" ? 3 : 0);

  function drawEntries() {
    const drawn = new Set();
    for (const entry of entries) {
      const x = xOf(entry.at);
      if (x < LABELS - 8 || x > width + 8) continue;
      const loud = LOUD.has(entry.kind), hit = matches(entry);
      for (const lane of placesOf(entry)) {
        // What lies on the same spot and looks the same is drawn once.
        const spot = [lane, Math.round(x), loud ? entry.kind : "", hit].join();
        if (drawn.has(spot) && entry.n !== chosen) continue;
        drawn.add(spot);
        const y = yOf(entry, lane);
        cx.globalAlpha = hit ? (loud ? 1 : 0.65) : 0.12;
        cx.fillStyle = paint(entry, lane);
        mark(entry, x, y, loud);
      }
    }
    cx.globalAlpha = 1;
    for (const entry of entries) {
      if (entry.kind !== "violated" && entry.n !== chosen) continue;
      const violated = entry.kind === "violated";
      cx.fillStyle = color(violated ? "violation" : "text");
      cx.fillRect(xOf(entry.at) - (violated ? 1 : 0.5), AXIS - 6, violated ? 2 : 1, height);
    }
  }

  function mark(entry, x, y, loud) {
    cx.beginPath();
    if (entry.kind === "strikes" || entry.kind === "deletes") {
      for (const [dx, dy] of [[0, -6], [6, 0], [0, 6], [-6, 0]]) cx.lineTo(x + dx, y + dy);
    } else if (entry.kind === "violated") {
      for (const [dx, dy] of [[-7, -7], [7, -7], [7, 7], [-7, 7]]) cx.lineTo(x + dx, y + dy);
    } else if (entry.kind === "dies") {
      cx.rect(x - 1.5, y - 8, 3, 18);
    } else {
      cx.arc(x, y, loud ? 4 : 2.5, 0, 7);
    }
    cx.fill();
  }

  function drawLabels() {
    cx.fillStyle = color("panel");
    cx.fillRect(0, 0, LABELS - 8, height);
    cx.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    cx.textBaseline = "middle";
    lanes.forEach((lane, i) => {
      cx.fillStyle = color(COLOR[lane.kind]);
      cx.fillRect(0, tops[i] + 2, 4, bottom(i) - tops[i] - 4);
      cx.fillStyle = color("text");
      let name = lane.title;
      while (name && cx.measureText(name + "…").width > LABELS - 26) name = name.slice(0, -1);
      cx.fillText(name === lane.title ? name : name + "…", 12, tops[i] + ROW / 2);
    });
  }

  const laneAt = (y) => { for (let i = lanes.length - 1; i >= 0; i--) if (y >= tops[i]) return i; return -1; };

  // The entries closest to a spot, and the bars under it.
  function under(x, y) {
    const lane = laneAt(y);
    if (lane < 0) return { near: [], over: [], lane };
    const far = (e) => Math.abs(xOf(e.at) - x);
    const near = entries.filter((e) => placesOf(e).includes(lane) && far(e) < 7).sort((a, b) => far(a) - far(b) || a.n - b.n);
    const over = spans.filter((s) => s.lane === lane && xOf(s.from) - 2 <= x && Math.max(xOf(s.to), xOf(s.from) + 2) + 2 >= x);
    return { near, over, lane };
  }

  function show(event, { near, over, lane }) {
    tip.replaceChildren();
    const line = (text, bold) => {
      const div = document.createElement("div");
      div.textContent = text;
      if (bold) div.style.fontWeight = "600";
      tip.append(div);
    };
    if (lane < 0 || (!near.length && !over.length && event.offsetX > LABELS)) { tip.style.display = "none"; return; }
    line(lanes[lane].title, true);
    near.slice(0, 8).sort((a, b) => a.n - b.n).forEach((e) => line(seconds(e.at) + "  " + e.text));
    if (near.length > 8) line("and " + (near.length - 8) + " more here: zoom in");
    over.slice(0, 4).forEach((s) => line(s.text + " (" + seconds(s.from, 3) + " to " + seconds(s.to, 3) + ")"));
    tip.style.display = "block";
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 12)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 12)) + "px";
  }

  const AROUND = 150;
  function list() {
    const all = words ? entries.filter((e) => matches(e) || e.n === chosen) : entries;
    const place = Math.max(0, all.findIndex((e) => e.n === chosen));
    const [from, to] = [Math.max(0, place - AROUND), Math.min(all.length, place + AROUND)];
    const table = document.createElement("table");
    const more = (n) => {
      const row = table.insertRow();
      row.className = "more";
      const cell = row.insertCell();
      cell.colSpan = 3;
      cell.textContent = "… " + n + " more";
    };
    if (from > 0) more(from);
    let mine = null;
    for (const entry of all.slice(from, to)) {
      const row = table.insertRow();
      row.className = entry.kind + (entry.n === chosen ? " chosen" : "");
      for (const text of [seconds(entry.at), lanes[entry.lane].name, entry.text]) row.insertCell().textContent = text;
      row.onclick = () => choose(entry.n, false);
      if (entry.n === chosen) mine = row;
    }
    if (to < all.length) more(all.length - to);
    log.replaceChildren(table);
    if (mine) log.scrollTop = mine.offsetTop - log.clientHeight / 2;
  }

  function choose(n, stay) {
    chosen = n;
    const x = xOf(entries[n].at);
    if (!stay && (x < LABELS || x > width - RIGHT)) { left = placeOf(entries[n].at) - inner() / 2 / zoom; keep(); }
    draw();
    list();
  }

  let drag = null;
  canvas.onmousedown = (event) => { drag = { x: event.clientX, left, moved: false }; };
  window.addEventListener("mouseup", () => { drag = drag && drag.moved ? { done: true } : null; });
  canvas.onmousemove = (event) => {
    if (drag && drag.x !== undefined && event.buttons) {
      drag.moved ||= Math.abs(event.clientX - drag.x) > 3;
      left = drag.left - (event.clientX - drag.x) / zoom;
      keep();
      draw();
      return;
    }
    show(event, under(event.offsetX, event.offsetY));
  };
  canvas.onmouseleave = () => { tip.style.display = "none"; };
  canvas.onclick = (event) => {
    if (drag && drag.done) { drag = null; return; }
    const { near } = under(event.offsetX, event.offsetY);
    if (near.length) choose(near[0].n, true);
  };
  canvas.ondblclick = (event) => zoomBy(3, event.offsetX);
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && !event.deltaX) return;
    event.preventDefault();
    if (event.ctrlKey) { zoomBy(event.deltaY < 0 ? 1.25 : 0.8, event.offsetX); return; }
    left += (event.deltaX || event.deltaY) / zoom;
    keep();
    draw();
  }, { passive: false });

  byId("in").onclick = () => zoomBy(2);
  byId("out").onclick = () => zoomBy(0.5);
  byId("all").onclick = () => { fit(); draw(); };
  byId("scale").onclick = (event) => {
    isSqueezed = !isSqueezed;
    event.target.setAttribute("aria-pressed", String(isSqueezed));
    fit();
    draw();
  };
  const jump = (kinds, step) => {
    let n = chosen;
    do { n += step; } while (n >= 0 && n < entries.length && !kinds.includes(entries[n].kind));
    if (entries[n]) choose(n, false);
  };
  byId("fault").onclick = () => {
    const before = chosen;
    jump(["strikes"], 1);
    if (chosen === before) { chosen = -1; jump(["strikes"], 1); }
  };
  byId("violation").onclick = () => { chosen = -1; jump(["violated"], 1); };
  find.oninput = () => { words = find.value.toLowerCase(); draw(); list(); };
  document.addEventListener("keydown", (event) => {
    if (event.target === find) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && entries[chosen + step]) { event.preventDefault(); choose(chosen + step, false); }
  });
  const resize = () => {
    const whole = Math.abs(zoom * length() - inner()) < 1;
    width = Math.max(480, box.clientWidth);
    if (whole) fit();
    keep();
    draw();
  };
  width = Math.max(480, box.clientWidth);
  fit();
  new ResizeObserver(resize).observe(box);
  const violated = entries.findLast((e) => e.kind === "violated");
  const first = violated || entries.find((e) => e.kind === "strikes") || entries[0];
  if (first) choose(first.n, true); else draw();
})();
