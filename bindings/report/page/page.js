"use strict";
const [report, before] = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const ROWS = 200; // of a table, at first
const SMALLEST = 1 / 2000; // share below which a frame is left out until it is zoomed into

function bytes(n, sign) {
    const mark = n < 0 ? "-" : sign ? "+" : "";
    n = Math.abs(n);
    if (n < 1024) return `${mark}${Math.round(n)} B`;
    const units = ["KiB", "MiB", "GiB", "TiB"];
    let unit = -1;
    for (; n >= 1024 && unit < 3; unit++) n /= 1024;
    return `${mark}${n.toFixed(2)} ${units[unit]}`;
}

function element(parent, tag, text, name) {
    const made = parent.appendChild(document.createElement(tag));
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
}

function frameText(f) {
    if (f.file) return `${f.function} (${f.file}${f.line ? ":" + f.line : ""})`;
    return f.module ? `${f.function} [${f.module.replace(/.*\//, "")}]` : f.function;
}

/* The contexts' names: one that was taken before is "name#2". */
function namesOf(whole) {
    const taken = new Map();
    return whole.contexts.map((context) => {
        const name = context.name ?? "";
        let unique = name, last = taken.get(name) ?? 1;
        while (taken.has(unique)) unique = `${name}#${++last}`;
        if (taken.has(name)) taken.set(name, last);
        taken.set(unique, 1);
        return unique;
    });
}

const numbers = new Map(); // of frames, by what they are
const numberOf = (text) => numbers.get(text) ?? numbers.set(text, numbers.size).size - 1;

/* Rows of all contexts; stacks with the outermost frame first. Those of one key are the same stack, also of
 * another process. */
function stacksOf(whole) {
    const rows = [], contexts = namesOf(whole);
    for (const [at, context] of whole.contexts.entries()) {
        const frames = context.frames || [], names = frames.map(frameText);
        const same = frames.map((f) => numberOf(JSON.stringify([f.function, f.file || "", f.line || 0, f.module || ""])));
        const inner = (f) => frames[f].kind !== "native";
        for (const s of context.stacks || []) {
            const site = s.frames.find(inner) ?? s.frames[0];
            const label = s.label || "unlabelled";
            rows.push({
                id: s.id, at, context: contexts[at], label,
                site: site === undefined ? "?" : names[site], line: names[s.frames.find((f) => inner(f) && frames[f].file)], frames: s.frames.map((f) => names[f]).reverse(),
                key: before ? JSON.stringify([contexts[at], label, ...s.frames.map((f) => same[f])]) : "",
                live: s.live_bytes, error: s.live_bytes_error || 0, peak: s.peak_bytes || 0,
                alloc: s.alloc_bytes || 0, blocks: s.live_blocks, pinned: s.pinned_bytes || 0, change: 0,
            });
        }
    }
    return rows;
}

function merged(list) {
    const byKey = new Map();
    for (const row of list) {
        const there = byKey.get(row.key);
        if (!there) {
            byKey.set(row.key, { ...row });
            continue;
        }
        there.error = Math.hypot(there.error, row.error);
        for (const value of ["live", "peak", "alloc", "blocks"]) there[value] += row[value];
    }
    return byKey;
}

const stacks = stacksOf(report);
let rows = stacks;
if (before) {
    const old = merged(stacksOf(before));
    rows = [...merged(stacks).values()];
    for (const r of rows) {
        r.change = r.live - (old.get(r.key)?.live ?? 0);
        old.delete(r.key);
    }
    for (const gone of old.values())
        rows.push({ ...gone, change: -gone.live, live: 0, error: 0, peak: 0, alloc: 0, blocks: 0 });
}
const sum = (list, value) => list.reduce((n, x) => n + (value(x) || 0), 0);
const stat = (whole, name) => sum(whole.contexts, (c) => (c.stats || {})[name]);

/* ---- Head ---- */

const runtime = report.process.runtime || {};
/* The names of the program and of the file that it runs; all of the command line is below. */
const command = report.process.command || [];
const last = (name) => name.replace(/\/+$/, "").split("/").pop();
const script = command.slice(1).find((word) => !word.startsWith("-"));
$("title").textContent = [command[0], script].filter(Boolean).map(last).join(" ") || "hakmem";
if (command.length) $("line").textContent = command.join(" ");
else $("command").remove();
/* Of a runtime's version the number: CPython's goes on with its compiler. */
function about(place, process, which) {
    const parts = [
        process.pid ? `process ${process.pid}` : "",
        which,
        process.time ? `${new Date(process.time * 1000).toISOString().slice(0, 19)}Z` : "",
    ].filter(Boolean);
    /* No line ends within a part. */
    for (const [i, part] of parts.entries()) {
        if (i) place.append(", ");
        element(place, "span", part);
    }
    return parts.length;
}
about($("process"), report.process, `${runtime.name || ""} ${(runtime.version || "").split(" ")[0]}`.trim());
if (before) {
    $("other").append("Compared with ");
    if (!about($("other"), before.process || {}, "")) $("other").append("another report");
} else $("other").remove();
for (const context of report.contexts) {
    const missing = (context.profile || {}).dropped_stacks || 0;
    if (!missing) continue;
    const known = sum(context.stacks || [], (row) => row.live_bytes), live = (context.stats || {}).live_bytes;
    element($("verdicts"), "div",
            `${missing} stacks are missing: the table of the profile was full` +
            (live > known ? `. The stacks below have ${bytes(known)} of ${bytes(live)} that are live` : ""), "verdict");
}
const named = new Map();
if (report.contexts.some((c) => c.verdicts))
    for (const s of stacks) if (!named.has(`${s.at} ${s.id}`)) named.set(`${s.at} ${s.id}`, s);
for (const [at, context] of report.contexts.entries()) {
    const words = {leak: "Leak?", growth: "Grows", filling: "Fills"};
    const order = (v) => [["filling", "growth", "leak"].indexOf(v.kind), v.bytes_a_window || 0];
    const leaksFirst = (a, b) => order(b)[0] - order(a)[0] || order(b)[1] - order(a)[1];
    for (const verdict of [...(context.verdicts || [])].sort(leaksFirst)) {
        const row = named.get(`${at} ${verdict.stack}`);
        element($("verdicts"), "div",
                `${words[verdict.kind] || "Grows"} ${row ? `${row.site}, ${row.label}` : "?"}: ${verdict.evidence}`,
                "verdict");
    }
}
const memory = report.memory || {};
/* What is not known has no card. */
const counted = (whole, name) => (whole.contexts.some((c) => c.stats) ? stat(whole, name) : undefined);
const resident = (whole, name) => (whole.memory || {})[name] || undefined;
for (const [name, of, key] of [
    ["live at the end", counted, "live_bytes"],
    ["live at the peak", counted, "peak_bytes"],
    ["committed", counted, "committed_bytes"],
    ["process resident", resident, "resident_bytes"],
    ["peak resident", resident, "peak_resident_bytes"],
]) {
    const value = of(report, key), old = before ? of(before, key) : undefined;
    if (value === undefined) continue;
    const card = element($("cards"), "div", undefined, "card");
    element(card, "b", bytes(value)).dataset.value = value;
    element(card, "span", name + (old === undefined ? "" : ` (${bytes(value - old, true)})`));
}

const measures = [["live", "live at the end"], ["peak", "live at the peak"], ["alloc", "allocated"]];
if (before) measures.unshift(["change", "growth since the other report"]);
for (const [value, name] of measures) element($("by"), "option", name).value = value;

/* ---- Flame graph ---- */

const amount = (row) => Math.max(0, row[$("by").value]);
const colour = d3.scaleOrdinal(d3.schemeTableau10.map((c) => d3.interpolateRgb(c, "#fff")(0.35)));
let tree, shown;

function child(node, name, label) {
    let found = node.children.get(name);
    if (!found) node.children.set(name, (found = { name, label, value: 0, children: new Map(), parent: node }));
    return found;
}

function grow(list) {
    const root = { name: "all", value: 0, children: new Map() };
    for (const row of list) {
        const value = amount(row);
        if (!value) continue;
        const several = report.contexts.length > 1 ? [row.context] : [];
        const first = $("group").value === "label" ? [`[${row.label}]`] : [];
        let node = root;
        node.value += value;
        for (const name of [...several, ...first, ...row.frames]) {
            node = child(node, name, row.label);
            node.value += value;
        }
    }
    return root;
}

function pruned(node, least) {
    const children = [];
    for (const c of node.children.values()) if (c.value >= least) children.push(pruned(c, least));
    return { name: node.name, value: node.value, real: node, children };
}

/* Of a file its name, with its folder where many files have that name: a frame is narrow. */
function brief(name) {
    return name.replace(/([(<])(?:[^()<>]*\/)?([^()<>/]+\/(?:init\.lua|__init__\.py)|(?!init\.lua|__init__\.py)[^()<>/]+)(:\d+)(?=[)>])/g,
                        "$1$2$3");
}

function zoom(node) {
    shown = node;
    $("path").replaceChildren();
    const way = [];
    for (let n = node; n; n = n.parent) way.unshift(n);
    for (const n of way.slice(-12)) {
        const button = element($("path"), "button", `${n.name} ${bytes(n.value)}`);
        button.dataset.value = n.value;
        button.onclick = () => zoom(n);
    }
    $("flame").replaceChildren();
    if (!node.value) {
        const none = $("by").value === "change" ? "No stack grew" : "No stack has any";
        return element($("flame"), "p", $("filter").value ? `${none} that has "${$("filter").value}"` : none);
    }
    const chart = flamegraph.default().width(Math.max(280, $("flame").clientWidth)).cellHeight(20).minFrameSize(1)
        .transitionDuration(0).inverted(true).sort(true).tooltip(false).selfValue(false)
        .getName((d) => brief(d.data.name))
        .setColorMapper((d) => colour(d.data.name.replace(/.*\(|:\d+\)$/g, "")))
        .onHover((d) => ($("hover").textContent = `${d.data.name}: ${bytes(d.data.value)}, ` +
            `${((d.data.value / tree.value) * 100).toFixed(1)} % of all`))
        .onClick((d) => { if (d && d.data.real !== shown) setTimeout(() => zoom(d.data.real)); });
    d3.select("#flame").datum(pruned(node, node.value * SMALLEST)).call(chart);
}

/* ---- Treemap ---- */

/* The sites of a label; those too small for a tile of their own are one tile. */
function tiles(label, sites, least) {
    const large = sites.filter((s) => s[1] >= least).map(([site, value]) => ({ label, site, value }));
    const rest = sum(sites, (s) => (s[1] < least ? s[1] : 0));
    const few = sites.length - large.length;
    return rest > 0 ? [...large, { label, site: `${few} ${large.length ? "other sites" : "sites"}`, value: rest, rest: true }]
        : large;
}

function map(list) {
    const box = $("map");
    box.replaceChildren();
    $("where").hidden = !sum(list, amount);
    if ($("where").hidden) return;
    const labels = d3.rollups(list, (of) => d3.rollups(of, (r) => sum(r, amount), (r) => r.site), (r) => r.label);
    const least = sum(list, amount) / 3000;
    const data = { children: labels.map(([label, sites]) => ({ label, children: tiles(label, sites, least) })) };
    const root = d3.hierarchy(data).sum((d) => d.value || 0).sort((a, b) => b.value - a.value);
    d3.treemap().size([box.clientWidth, box.clientHeight]).paddingInner(1).paddingOuter(2)
        .paddingTop((node) => (node.depth === 1 ? 18 : 0))(root);
    for (const node of root.descendants()) {
        if (node.depth === 0 || !node.value) continue;
        const { label, site, rest } = node.data, whole = node.depth === 1, width = node.x1 - node.x0;
        const text = `${whole ? label : site} ${bytes(node.value)}`;
        const tile = element(box, "div", width > 40 ? brief(text) : "", whole ? "label" : "");
        tile.title = whole ? text : `${label}: ${text}`;
        tile.dataset.value = node.value;
        Object.assign(tile.style, { left: `${node.x0}px`, top: `${node.y0}px`, width: `${width}px`,
            height: `${node.y1 - node.y0}px` });
        if (!whole) tile.style.background = colour(label);
        tile.onclick = () => { $("filter").value = whole || rest ? label : site; show(); };
    }
}

/* ---- Tables ---- */

/* Shows the stack of a row below it, the innermost frame first, or hides it again. */
function unfold(tr, row, columns) {
    if (tr.nextSibling && tr.nextSibling.className === "frames") return tr.nextSibling.remove();
    const below = document.createElement("tr");
    below.className = "frames";
    element(below, "td", [...row.frames].reverse().join("\n") || "no frames").colSpan = columns;
    tr.after(below);
}

function table(place, columns, list, sorted, rest) {
    const [head, body] = [$(place).querySelector("thead"), $(place).querySelector("tbody")];
    $(place).style.setProperty("--numbers", columns.filter((c) => c[2]).length);
    let [by, down, most] = [sorted, true, ROWS];
    function fill() {
        head.replaceChildren();
        body.replaceChildren();
        const line = element(head, "tr");
        for (const [key, name, number] of columns) {
            const cell = element(line, "th", name + (key === by ? (down ? " ▾" : " ▴") : ""),
                                 (number ? "" : "name ") + (key === by ? "on" : ""));
            cell.dataset.key = key;
            cell.onclick = () => { [by, down] = [key, key === by ? !down : number]; fill(); };
        }
        const order = (a, b) => (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0);
        const all = [...list].sort((a, b) => (down ? order(b, a) : order(a, b)));
        for (const row of all.slice(0, most)) {
            const tr = element(body, "tr");
            for (const [key, , number, form] of columns) {
                const cell = element(tr, "td", number ? form(row[key]) : row[key], number ? "" : "name");
                if (number) cell.dataset.value = row[key];
            }
            if (row.frames) tr.onclick = () => unfold(tr, row, columns.length);
        }
        if (!rest) return;
        $(rest).textContent = all.length > most ? `${all.length - most} more ` : "";
        if (all.length > most) element($(rest), "button", "show").onclick = () => { most *= 5; fill(); };
    }
    fill();
}

const plain = (n) => Math.round(n).toLocaleString("en");
const size = (n) => bytes(n);

function show() {
    const wanted = $("filter").value.toLowerCase();
    const text = (r) => [r.context, r.label, ...r.frames].join("\n").toLowerCase();
    const list = wanted ? rows.filter((r) => text(r).includes(wanted)) : rows;
    tree = grow(list);
    zoom(tree);
    map(list);
    const columns = [["live", "live", true, size], ["error", "±", true, size], ["peak", "peak", true, size],
        ["alloc", "allocated", true, size], ["blocks", "blocks", true, plain], ["label", "label"], ["site", "site"]];
    if (before) columns.unshift(["change", "change", true, (n) => bytes(n, true)]);
    table("stacks", columns, list, $("by").value, "more");
}

/* ---- Where the resident memory is ---- */

const OURS = ["live", "between", "cached", "metadata", "unnamed"]; // parts of hakmem's

/* Each bar begins where the one above it ends. */
function parts() {
    const list = memory.parts || [], all = sum(list, (p) => p.bytes), old = new Map();
    $("memory").hidden = !all;
    for (const p of (before?.memory || {}).parts || []) old.set(`${p.kind} ${p.name}`, p.bytes);
    let from = 0, said;
    for (const p of all ? list : []) {
        const row = element($("memory").querySelector("tbody"), "tr"), name = element(row, "td", p.name, "name");
        const bar = element(name, "div", undefined, OURS.includes(p.kind) ? "bar own" : "bar");
        Object.assign(bar.style, { marginLeft: `${(from / all) * 100}%`, width: `${(p.bytes / all) * 100}%` });
        from += p.bytes;
        const change = old.size ? ` (${bytes(p.bytes - (old.get(`${p.kind} ${p.name}`) ?? 0), true)})` : "";
        element(row, "td", bytes(p.bytes) + change).dataset.value = p.bytes;
        element(row, "td", `${((p.bytes / all) * 100).toFixed(1)} %`);
        element(row, "td", p.hint === said ? "" : p.hint || "", "name hint");
        said = p.hint;
    }
}

/* Which blocks keep free memory from going back, by size and by line. */
function holes() {
    const list = report.contexts.flatMap((c) => c.holes || []).sort((a, b) => b.pinned_bytes - a.pinned_bytes);
    const pinned = sum(list, (h) => h.pinned_bytes), unused = sum(list, (h) => h.free_bytes);
    $("holes").hidden = pinned < 65536;
    if ($("holes").hidden) return;
    $("holes").querySelector("p").textContent = `${bytes(unused)} are free in slabs that have live blocks. Of these trim ` +
        `cannot give back ${bytes(pinned)}, because a live block lies on each page of them.`;
    for (const h of list.slice(0, 8)) {
        if (!h.pinned_bytes) break;
        const row = element($("classes").querySelector("tbody"), "tr");
        for (const text of [bytes(h.pinned_bytes), bytes(h.free_bytes), bytes(h.block_bytes), plain(h.blocks || 0)])
            element(row, "td", text);
    }
    const sites = d3.rollups(stacks.filter((r) => r.pinned > 0), (of) => [sum(of, (r) => r.pinned), sum(of, (r) => r.blocks)],
                             (r) => (r.line && r.line !== r.site ? `${r.site} < ${r.line}` : r.site)).sort((a, b) => b[1][0] - a[1][0]);
    $("pins").hidden = sites.length === 0;
    for (const [site, [n, blocks]] of sites.slice(0, 10)) {
        const row = element($("pins").querySelector("tbody"), "tr");
        element(row, "td", bytes(n)).dataset.value = n;
        element(row, "td", plain(blocks));
        element(row, "td", site, "name");
    }
}

/* ---- Timeline ---- */

/* What a learner decided, as lines across the plot and as a list below it. */
function decided(context, first) {
    const list = context.decisions || [];
    $("decisions").replaceChildren();
    for (const d of list)
        element($("decisions"), "li", `${((d.at_ns - first) / 1e9).toFixed(1)} s: ${d.text}`, d.kind);
    return list.filter((d) => d.kind !== "try" && d.kind !== "undo").map((d) => ({ name: d.kind, at_ns: d.at_ns }));
}

/* What was measured over time. Without a learner these are the marks of the profile, and the report itself. */
function pointsOf(context) {
    if ((context.timeline || []).length > 1) return context.timeline;
    const marks = context.marks || [];
    if (marks.length === 0 || !context.stats) return [];
    return [...marks, { at_ns: report.process.now_ns, live_bytes: context.stats.live_bytes,
        committed_bytes: context.stats.committed_bytes, resident_bytes: memory.resident_bytes }];
}

let plotted;

function timeline() {
    const context = report.contexts.find((c) => pointsOf(c).length > 1);
    $("time").hidden = !context;
    if (!context) return;
    $("plot").replaceChildren();
    const points = pointsOf(context), first = points[0].at_ns;
    const style = getComputedStyle(document.documentElement);
    const [soft, line] = [style.getPropertyValue("--soft"), style.getPropertyValue("--line")];
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const series = [["live", "#2f6fdb"], ["committed", "#e08a1e"], ["resident", "#2a9d5c"]];
    const marks = [...(context.marks || []), ...decided(context, first)];
    marks.sort((a, b) => a.at_ns - b.at_ns);
    const drawMarks = (u) => {
        const ends = []; /* where the names of each row end */
        for (const mark of marks) {
            const x = u.valToPos((mark.at_ns - first) / 1e9, "x", true);
            if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
            u.ctx.save();
            u.ctx.strokeStyle = u.ctx.fillStyle = style.getPropertyValue("--mark");
            u.ctx.beginPath();
            u.ctx.moveTo(x, u.bbox.top);
            u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
            u.ctx.stroke();
            const width = u.ctx.measureText(mark.name).width;
            const left = x + 8 + width < u.bbox.left + u.bbox.width ? x + 4 : x - 4 - width;
            const row = [0, 1, 2, 3, 4, 5].find((n) => !(ends[n] > left)) ?? 0;
            ends[row] = left + width + 4;
            u.ctx.textAlign = "left";
            u.ctx.fillText(mark.name, left, u.bbox.top + (12 + 14 * row) * devicePixelRatio);
            u.ctx.restore();
        }
    };
    plotted = new uPlot({
        width: Math.max(280, $("plot").clientWidth), height: 260, scales: { x: { time: false } },
        axes: [{ ...axis, label: "seconds" }, { ...axis, size: 80, incrs: d3.range(50).map((n) => 2 ** n), values: (u, all) => all.map((n) => bytes(n)) }],
        series: [{ label: "s" }, ...series.map(([label, stroke]) => ({ label, stroke, width: 2,
            value: (u, n) => (n == null ? "" : bytes(n)) }))],
        hooks: { draw: [drawMarks] },
    }, [points.map((p) => (p.at_ns - first) / 1e9),
        ...series.map(([name]) => points.map((p) => p[`${name}_bytes`] ?? null))], $("plot"));
}

const contexts = namesOf(report);
const labels = report.contexts.flatMap((c, at) => (c.labels || []).map((l) => ({ ...l, context: contexts[at] })));
$("labels").hidden = labels.length === 0;
table("labels", [["live_bytes", "live", true, size], ["live_blocks", "blocks", true, plain], ["name", "label"],
    ["context", "context"]], labels, "live_bytes");
$("profile").hidden = $("stacks").hidden = document.querySelector(".tools").hidden = rows.length === 0;
if (rows.length > 0) show();
else $("time").before($("labels"));
parts();
holes();
timeline();
for (const id of ["by", "group"]) $(id).onchange = show;
let wait;
$("filter").oninput = () => { clearTimeout(wait); wait = setTimeout(show, 200); };
let width = innerWidth;
addEventListener("resize", () => {
    if (width === innerWidth) return;
    width = innerWidth;
    clearTimeout(wait);
    wait = setTimeout(() => { if (rows.length > 0) show(); timeline(); }, 200);
});
