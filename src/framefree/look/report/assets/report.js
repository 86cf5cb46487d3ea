"use strict";
// Draws the figures and plays the animations of a report. Data stands in script elements of the
// page: {"traces", "layout", "over_time"} for a figure, see look/report/scene.py for an animation.
(() => {
  // The same as in look/colors.py: colour-blind people can tell them apart.
  const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d",
                  "#772200"];
  const FONT = {family: "system-ui, -apple-system, Segoe UI, Roboto, Arial, sans-serif",
                size: 13, color: "#1d2733"};
  // Nothing of a page leaves it: no button uploads its data, and no server is known to it.
  const CONFIG = {responsive: true, displaylogo: false, showTips: false,
                  showSendToCloud: false, showEditInChartStudio: false, plotlyServerURL: "",
                  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"]};
  const TOOLBAR = {bgcolor: "rgba(255,255,255,.7)", color: "#6b7684", activecolor: "#1d2733"};
  const TYPES = {f4: Float32Array, f8: Float64Array, i2: Int16Array, u2: Uint16Array,
                 u4: Uint32Array};
  // Pixels for the labels of a box in space, at its sides and below it.
  const LABELS = 70, LABELS_BELOW = 48;
  const figures = [];

  function unpack(packed) {
    const text = atob(packed.bdata);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return new TYPES[packed.dtype](bytes.buffer);
  }

  function darker(color) {
    const parts = [1, 3, 5].map((k) => Math.round(0.4 * parseInt(color.slice(k, k + 2), 16)));
    return `rgb(${parts.join(",")})`;
  }

  function dataOf(element) {
    return JSON.parse(document.getElementById(element.dataset.of).textContent);
  }

  // ------------------------------------------------------------------ figures

  function drawFigure(element) {
    const data = dataOf(element);
    const full = new Set(data.traces.filter((t) => !t.dashed && !t.area).map((t) => t.color));
    let areas = 0;
    const traces = data.traces.map((trace, i) => {
      const own = trace.faint ? "#b9c2cb" : COLORS[trace.color % COLORS.length];
      // Dashes lie on the line that they go with: darker, they are seen where both are one.
      const color = trace.dashed && full.has(trace.color) ? darker(own) : own;
      const again = trace.color >= COLORS.length && !trace.faint;   // the palette's second round
      const x = unpack(trace.x), y = unpack(trace.y);
      if (trace.area) {
        const depth = areas++ ? "30" : "68";   // the inner of two bands is the darker one
        return {type: "scatter", name: trace.name, x, y, mode: "lines", fill: "toself",
                fillcolor: color + depth, line: {width: 0, color}, hoverinfo: "skip",
                legendrank: 1000 + i};
      }
      return {type: "scatter", name: trace.name, x, y,
              mode: trace.mode, connectgaps: false, legendrank: 1000 + i,
              marker: {color, size: x.length > 300 ? 4 : 7},
              // Lines are thinned already; what Plotly would leave out shows as corners.
              line: {color, width: trace.dashed ? 1.8 : trace.faint ? 1 : 2, simplify: false,
                     dash: trace.dashed ? "dash" : again ? "dot" : "solid"}};
    });
    if (data.layout.zaxis) return drawInSpace(element, data, traces);
    // Drawn last, dashes are on top; the legend keeps the order of the data.
    traces.sort((a, b) => (a.line.dash === "dash") - (b.line.dash === "dash"));
    const axis = {zeroline: false, gridcolor: "#e9edf1", linecolor: "#c9d1d9", showline: true,
                  ticks: "outside", tickcolor: "#c9d1d9", ticklen: 4, exponentformat: "power",
                  automargin: true, hoverformat: ".6~g"};
    const layout = {
      font: FONT, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "#fff", hovermode: "x",
      modebar: TOOLBAR,
      margin: {l: 58, r: 14, t: 10, b: 44}, showlegend: data.layout.showlegend,
      legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: {size: 12}},
      hoverlabel: {font: {size: 12}, namelength: 40},
      xaxis: {...axis, ...data.layout.xaxis}, yaxis: {...axis, ...data.layout.yaxis},
    };
    // With a distance of their own the titles push the margins, and never lie over the ticks.
    for (const one of [layout.xaxis, layout.yaxis]) one.title = {...one.title, standoff: 8};
    if (!data.over_time) layout.hovermode = "closest";
    return Plotly.newPlot(element, traces, layout, CONFIG).then(() => {
      oneStop(element);
      if (data.over_time) figures.push(cursor(element, traces));
    });
  }

  // A figure whose lines have three coordinates: a picture of the whole motion that can be turned.
  function drawInSpace(element, data, traces) {
    traces.forEach((trace, i) => {
      trace.type = "scatter3d";
      trace.z = unpack(data.traces[i].z);
      const {dashed, faint} = data.traces[i];
      trace.line.width = faint || dashed ? 2 : 4;
      trace.line.dash = dashed ? "dash" : "solid";
      if (dashed) trace.line.color = "#1d2733";   // seen on top of the line that it goes with
      trace.hoverinfo = "name";
    });
    const axis = {gridcolor: "#e9edf1", zerolinecolor: "#e9edf1", showbackground: false,
                  nticks: 6, showspikes: false};
    const {xaxis, yaxis, zaxis, showlegend} = data.layout;
    // An axis that is short beside the longest one has room for few labels.
    const span = (name) => {
      let low = Infinity, high = -Infinity;
      for (const trace of traces) {
        for (const value of trace[name]) {
          if (value < low) low = value;
          if (value > high) high = value;
        }
      }
      return Math.max(high - low, 0);
    };
    const spans = ["x", "y", "z"].map(span);
    const [xticks, yticks, zticks] = spans.map(
      (one) => ({nticks: Math.max(Math.round(6 * one / Math.max(...spans, 1e-30)), 2)}));
    const layout = {
      font: FONT, paper_bgcolor: "rgba(0,0,0,0)", modebar: TOOLBAR, showlegend,
      margin: {l: 0, r: 0, t: 10, b: 0},
      legend: {orientation: "h", y: 1.0, yanchor: "bottom", x: 0, font: {size: 12}},
      scene: {xaxis: {...axis, ...xticks, ...xaxis}, yaxis: {...axis, ...yticks, ...yaxis},
              zaxis: {...axis, ...zticks, ...zaxis},
              aspectmode: "data", dragmode: "orbit",
              camera: {eye: {x: 1.2, y: -1.75, z: 0.95}, center: {x: 0, y: 0, z: -0.12}}},
    };
    return Plotly.newPlot(element, traces, layout,
                          {...CONFIG, modeBarButtonsToRemove: ["resetCameraLastSave3d",
                           "tableRotation", "hoverClosest3d"]}).then(() => oneStop(element));
  }

  // A toolbar is one stop of the Tab key, and arrow keys move within it: a page of many figures
  // would take hundreds of stops otherwise.
  function oneStop(element) {
    const buttons = () => [...element.querySelectorAll(".modebar-btn")];
    const mark = () => {
      const all = buttons(), held = Math.max(all.indexOf(document.activeElement), 0);
      all.forEach((button, i) => { button.tabIndex = i === held ? 0 : -1; });
    };
    element.addEventListener("keydown", (event) => {
      const all = buttons(), at = all.indexOf(event.target);
      const way = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (at < 0 || !way) return;
      event.preventDefault();
      all[(at + way + all.length) % all.length].focus();
      mark();
    });
    element.on("plotly_afterplot", mark);
    mark();
  }

  // A thin line that shows in a figure over time where the animation is.
  function cursor(element, traces) {
    const ends = traces.map((trace) => trace.x[trace.x.length - 1]).filter(Number.isFinite);
    const latest = Math.max(...ends);
    const line = document.createElement("div");
    line.className = "now";
    element.appendChild(line);
    let last = null;
    const show = (t, end) => {
      // A figure of some longer run is not about this motion.
      if (t === null || latest > 1.05 * end) return;
      last = [t, end];
      const {xaxis, _size: size} = element._fullLayout;
      const at = xaxis.d2p(t);
      const inside = at >= 0 && at <= size.w;
      line.style.display = inside ? "block" : "none";
      line.style.left = `${size.l + at}px`;
      line.style.top = `${size.t}px`;
      line.style.height = `${size.h}px`;
    };
    element.on("plotly_afterplot", () => { if (last) show(...last); });
    element.on("plotly_click", (event) => {
      const chosen = event.points[0].x;
      players.forEach((player) => player.go(chosen));
    });
    return show;
  }

  // ------------------------------------------------------------------ animations

  const players = [];

  class Player {
    constructor(card) {
      this.element = card.querySelector(".scene");
      this.button = card.querySelector(".controls button");
      this.slider = card.querySelector(".controls input");
      this.clock = card.querySelector("output");
      this.select = card.querySelector("select");
      const data = dataOf(this.element);
      this.data = data;
      this.times = unpack(data.times);
      this.poses = unpack(data.poses);
      this.bodies = data.bodies.length;
      this.meshes = data.meshes.map((mesh) => ({
        points: unpack(mesh.points), owner: unpack(mesh.owner)}));
      this.trails = data.trails.map((trail) => unpack(trail.points));
      this.t = this.times[0];
      this.end = this.times[this.times.length - 1];
      this.playing = false;
      this.busy = false;
      this.frame = new Float64Array(12 * (this.bodies + 1));
    }

    draw() {
      this.poseAt(this.t);
      const {data} = this;
      const traces = [];
      this.moving = [];
      data.meshes.forEach((mesh, i) => {
        const triangles = unpack(mesh.triangles);
        const n = triangles.length / 3;
        const [I, J, K] = [0, 1, 2].map((c) => {
          const column = new Uint32Array(n);
          for (let k = 0; k < n; k++) column[k] = triangles[3 * k + c];
          return column;
        });
        const facecolor = Array.from(unpack(mesh.color), (c) => mesh.palette[c]);
        const names = Array.from(this.meshes[i].owner, (b) => (b < 0 ? "world" : data.bodies[b]));
        this.moving.push(traces.length);
        traces.push({type: "mesh3d", ...this.meshAt(i), i: I, j: J, k: K, facecolor,
                     opacity: mesh.opacity, text: names.map(escaped), hoverinfo: "text",
                     showlegend: false, flatshading: false,
                     lighting: {ambient: 0.62, diffuse: 0.75, specular: 0.12, roughness: 0.7,
                                fresnel: 0.05, vertexnormalsepsilon: 0, facenormalsepsilon: 0},
                     lightposition: {x: 3000, y: -6000, z: 9000}});
      });
      if (data.ties.length) {
        this.moving.push(traces.length);
        traces.push({type: "scatter3d", mode: "lines", ...this.tiesAt(), hoverinfo: "skip",
                     name: "springs, dampers, ties", line: {color: "#6b7684", width: 4}});
      }
      this.addCurves(traces);
      const axis = (title, range, share) => ({
        title: {text: `${title} (m)`, font: {size: 12}}, range, autorange: false,
        backgroundcolor: "#f7f9fb", showbackground: true, gridcolor: "#dfe5eb",
        zerolinecolor: "#b9c4cf", tickfont: {size: 11}, showspikes: false,
        nticks: Math.max(3, Math.round(7 * share))});
      const [x, y, z] = data.aspect;
      // The legend has room of its own below the picture: a row for an entry on a narrow page.
      const named = traces.filter((trace) => trace.name && trace.showlegend !== false).length;
      const rows = Math.ceil(named / Math.max(1, Math.floor(this.element.offsetWidth / 230)));
      const eye = eyeFor(data, this.element.offsetWidth, this.element.offsetHeight - 22 * rows);
      const layout = {
        font: FONT, margin: {l: 0, r: 0, t: 0, b: 22 * rows}, paper_bgcolor: "rgba(0,0,0,0)",
        uirevision: "camera", modebar: TOOLBAR,
        legend: {orientation: "h", x: 0, y: 0, yanchor: "top", font: {size: 12}},
        scene: {xaxis: axis("x", data.ranges[0], x), yaxis: axis("y", data.ranges[1], y),
                zaxis: axis("z", data.ranges[2], z), aspectmode: "manual", aspectratio: {x, y, z},
                camera: {eye: {x: eye[0], y: eye[1], z: eye[2]},
                         center: {x: 0, y: 0, z: data.center}}, dragmode: "orbit"},
      };
      return Plotly.newPlot(this.element, traces, layout,
                            {...CONFIG, modeBarButtonsToRemove: ["resetCameraLastSave3d",
                             "tableRotation", "hoverClosest3d"]}).then(() => {
        oneStop(this.element);
        this.control();
      });
    }

    addCurves(traces) {
      const {data} = this;
      data.paths.forEach((path, i) => {
        traces.push({type: "scatter3d", mode: "lines", ...columns(unpack(path.points)),
                     name: escaped(path.name), hoverinfo: "name",
                     line: {color: COLORS[(6 + i) % COLORS.length], width: 4, dash: "dash"}});
      });
      data.trails.forEach((trail, i) => {
        const color = COLORS[(4 + i) % 6];   // references have the two that are left
        traces.push({type: "scatter3d", mode: "lines", ...columns(this.trails[i]),
                     showlegend: false, hoverinfo: "skip", opacity: 0.3,
                     line: {color, width: 2}});
        this.moving.push(traces.length);
        traces.push({type: "scatter3d", mode: "lines", ...this.trailAt(i),
                     name: `path of ${escaped(trail.name)}`, hoverinfo: "name",
                     line: {color, width: 5}});
      });
    }

    // Rotation (row by row) and position of every body at time t; the world comes last.
    poseAt(t) {
      const {times, poses, bodies, frame} = this;
      let low = 0, high = times.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (times[middle] <= t) low = middle; else high = middle;
      }
      const span = times[high] - times[low];
      const s = span > 0 ? Math.min(Math.max((t - times[low]) / span, 0), 1) : 0;
      this.index = low + s;
      for (let b = 0; b < bodies; b++) {
        const p = 7 * (low * bodies + b), q = 7 * (high * bodies + b);
        let dot = 0;
        for (let k = 3; k < 7; k++) dot += poses[p + k] * poses[q + k];
        const sign = dot < 0 ? -s : s;
        const m = [];
        for (let k = 0; k < 7; k++) {
          m.push((1 - s) * poses[p + k] + (k < 3 ? s : sign) * poses[q + k]);
        }
        const size = Math.hypot(m[3], m[4], m[5], m[6]);
        const [w, x, y, z] = [m[3] / size, m[4] / size, m[5] / size, m[6] / size];
        frame.set([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                   2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                   2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
                   m[0], m[1], m[2]], 12 * b);
      }
      frame.set([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], 12 * bodies);
    }

    place(body, x, y, z, k, out) {
      const f = this.frame, o = 12 * (body < 0 ? this.bodies : body);
      out.x[k] = f[o] * x + f[o + 1] * y + f[o + 2] * z + f[o + 9];
      out.y[k] = f[o + 3] * x + f[o + 4] * y + f[o + 5] * z + f[o + 10];
      out.z[k] = f[o + 6] * x + f[o + 7] * y + f[o + 8] * z + f[o + 11];
    }

    meshAt(i) {
      const {points, owner} = this.meshes[i];
      const out = empty(owner.length);
      for (let k = 0; k < owner.length; k++) {
        this.place(owner[k], points[3 * k], points[3 * k + 1], points[3 * k + 2], k, out);
      }
      return out;
    }

    tiesAt() {
      const out = empty(3 * this.data.ties.length);
      this.data.ties.forEach(([a, p, b, q], i) => {
        this.place(a, ...p, 3 * i, out);
        this.place(b, ...q, 3 * i + 1, out);
        out.x[3 * i + 2] = out.y[3 * i + 2] = out.z[3 * i + 2] = NaN;
      });
      return out;
    }

    trailAt(i) {
      const points = this.trails[i], low = Math.floor(this.index), s = this.index - low;
      const out = columns(points.subarray(0, 3 * (low + 1)), 1);
      const high = Math.min(low + 1, points.length / 3 - 1);
      ["x", "y", "z"].forEach((c, k) => {
        out[c][low + 1] = (1 - s) * points[3 * low + k] + s * points[3 * high + k];
      });
      return out;
    }

    show(t) {
      this.t = t;
      this.slider.value = String((t - this.times[0]) / (this.end - this.times[0] || 1));
      this.clock.textContent = `${t.toFixed(this.digits)} s`;
      figures.forEach((mark) => mark(t, this.end));
      if (this.busy) return;   // the picture is drawn again when the one before it is there
      this.busy = true;
      this.poseAt(t);
      const parts = [
        ...this.meshes.map((_, i) => this.meshAt(i)),
        ...(this.data.ties.length ? [this.tiesAt()] : []),
        ...this.trails.map((_, i) => this.trailAt(i)),
      ];
      const update = {x: parts.map((p) => p.x), y: parts.map((p) => p.y), z: parts.map((p) => p.z)};
      Plotly.restyle(this.element, update, this.moving).then(() => {
        this.busy = false;
        this.shown = (this.shown || 0) + 1;
        this.element.dataset.shown = String(this.shown);
        if (!this.playing && this.t !== t) this.show(this.t);
      });
    }

    go(t) { this.show(Math.min(Math.max(t, this.times[0]), this.end)); }

    control() {
      const length = this.end - this.times[0];
      this.digits = length > 20 ? 1 : length > 2 ? 2 : length > 0.2 ? 3 : 5;
      const natural = length >= 2 && length <= 30 ? 1 : rounded(length / 10);
      const speeds = [0.1, 0.25, 0.5, 1, 2, 4].map((f) => Number((f * natural).toPrecision(3)));
      for (const speed of speeds) {
        this.select.add(new Option(`${speed} × real time`, speed, speed === natural,
                                   speed === natural));
      }
      this.slider.addEventListener("input", () => {
        this.pause();
        this.show(this.times[0] + Number(this.slider.value) * length);
      });
      this.element.addEventListener("keydown", (event) => {
        if (event.target !== this.element) return;   // keys of the toolbar are its own
        const way = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        if (event.key === " ") this.playing ? this.pause() : this.play();
        else if (way) { this.pause(); this.show(this.within(this.t + way * length / 50)); }
        else if (event.key === "Home") this.show(this.times[0]);
        else if (event.key === "End") this.show(this.end);
        else return;
        event.preventDefault();
      });
      this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
      this.show(this.t);
      players.push(this);
    }

    within(t) {
      return Math.min(Math.max(t, this.times[0]), this.end);
    }

    play() {
      this.playing = true;
      this.button.classList.add("playing");
      this.button.setAttribute("aria-label", "Pause");
      if (this.t >= this.end) this.t = this.times[0];
      let before = null;
      const step = (now) => {
        if (!this.playing) return;
        const passed = before === null ? 0 : Math.min((now - before) / 1000, 0.25);
        before = now;
        let t = this.t + passed * Number(this.select.value);
        if (t > this.end) {
          // Stay at the end for a moment, then begin anew.
          t = this.t < this.end ? this.end : this.times[0];
        }
        this.show(t);
        requestAnimationFrame(step);
      };
      requestAnimationFrame(step);
    }

    pause() {
      this.playing = false;
      this.button.classList.remove("playing");
      this.button.setAttribute("aria-label", "Play");
    }
  }

  // Where to look from, in the direction of the data: so near that the box just fits into a picture
  // of so many pixels, with room for the labels of its axes. Plotly sees 45 degrees from below to above.
  function eyeFor(data, width, height) {
    const room = [width, height].map((size, k) =>
      Math.max(size / 2 - [LABELS, LABELS_BELOW][k], 0.6 * size / 2));
    const pixels = height / 2 / Math.tan(Math.PI / 8);
    const size = Math.hypot(...data.eye), back = data.eye.map((value) => value / size);
    const flat = Math.hypot(back[0], back[1]) || 1;
    const right = [-back[1] / flat, back[0] / flat, 0];
    const up = [back[1] * right[2] - back[2] * right[1], back[2] * right[0] - back[0] * right[2],
                back[0] * right[1] - back[1] * right[0]];
    const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let distance = 0;
    for (let corner = 0; corner < 8; corner++) {
      const p = data.aspect.map((side, k) => (corner >> k & 1 ? side : -side) / 2);
      p[2] -= data.center;
      [right, up].forEach((way, k) => {
        // At a distance d the corner is pixels |p way| / (d - p back) from the middle.
        distance = Math.max(distance, dot(p, back) + pixels * Math.abs(dot(p, way)) / room[k]);
      });
    }
    // The eye is given from the center that it looks at.
    return back.map((value, k) => distance * value + (k === 2 ? data.center : 0));
  }

  // 1, 2 or 5 times a power of ten.
  function rounded(value) {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    const lead = value / power;
    return Number(((lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10) * power).toPrecision(3));
  }

  function empty(n) {
    return {x: new Float32Array(n), y: new Float32Array(n), z: new Float32Array(n)};
  }

  function columns(points, more = 0) {
    const n = points.length / 3, out = empty(n + more);
    for (let k = 0; k < n; k++) {
      out.x[k] = points[3 * k]; out.y[k] = points[3 * k + 1]; out.z[k] = points[3 * k + 2];
    }
    return out;
  }

  function escaped(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  // ------------------------------------------------------------------ the page

  // On paper a picture is nearly as wide as the page: of 600 px two fit on A4.
  function forPaper(printing) {
    for (const element of document.querySelectorAll(".scene, .figure")) {
      const inner = element.querySelector(".plot-container");
      const {width, height} = element._fullLayout;   // as drawn, whatever the width is by now
      const scale = 600 / width;
      if (element._fullLayout.scene) onPaper(element, printing);
      inner.style.transform = printing ? `scale(${scale})` : "";
      inner.style.transformOrigin = "0 0";
      inner.style.width = printing ? `${width}px` : "";
      element.style.height = printing ? `${scale * height}px` : "";
    }
  }

  // What a graphics card has drawn is blank on paper: a plain copy of it is not.
  function onPaper(element, printing) {
    element.querySelectorAll(".paper").forEach((copy) => copy.remove());
    if (!printing) return;
    const {glplot} = element._fullLayout.scene._scene, drawn = glplot.canvas;
    glplot.redraw();
    const copy = document.createElement("canvas");
    copy.className = "paper";
    [copy.width, copy.height] = [drawn.width, drawn.height];
    copy.style.cssText = "position:absolute;left:0;top:0;width:100%;height:100%";
    copy.getContext("2d").drawImage(drawn, 0, 0);
    drawn.after(copy);
  }

  // The library that draws is in the page, compressed: that is two thirds of what it would be.
  async function loadLibrary() {
    const text = atob(document.getElementById("plotly").textContent);
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  }

  async function main() {
    await loadLibrary();
    for (const card of document.querySelectorAll(".animation")) await new Player(card).draw();
    for (const element of document.querySelectorAll(".figure")) {
      await drawFigure(element);
      await new Promise((done) => setTimeout(done));   // the page stays alive in between
    }
    players.forEach((player) => player.show(player.t));
    addEventListener("beforeprint", () => forPaper(true));
    addEventListener("afterprint", () => forPaper(false));
    document.documentElement.dataset.ready = "true";
  }

  main();
})();
