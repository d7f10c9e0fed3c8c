"use strict";
const [report, before] = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

function bytes(n, sign) {
    const mark = n < 0 ? "-" : sign ? "+" : "";
    n = Math.abs(n);
    if (n < 1024) return `${mark}${Math.round(n)} B`;
    const units = ["KiB", "MiB", "GiB", "TiB"];
    let unit = -1;
    for (; n >= 1024 && unit < 3; unit++) n /= 1024;
    return `${mark}${n.toFixed(2)} ${units[unit]}`;
}

/* Of nanoseconds, with as much as people read of it. */
function duration(ns) {
    const s = ns / 1e9;
    if (s < 90) return `${Math.round(s * 10) / 10} s`;
    if (s < 5400) return `${Math.round(s / 6) / 10} min`;
    if (s < 129600) return `${Math.round(s / 360) / 10} h`;
    return `${Math.round(s / 8640) / 10} days`;
}

function element(parent, tag, text, name) {
    const made = parent.appendChild(document.createElement(tag));
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
}

/* What can be clicked has the keyboard, too. */
function button(made, act, role = "button") {
    made.tabIndex = 0;
    if (role) made.setAttribute("role", role);
    made.onclick = act;
    made.onkeydown = (event) => {
        if (event.target !== made || (event.key !== "Enter" && event.key !== " ")) return;
        event.preventDefault();
        act(event);
    };
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

/* Of the import system of Python and of Lua: their frames say nothing of who imports what. */
const isImport = (f) => /importlib[./]_bootstrap/.test(f.file || "") || (!f.file && f.function === "require");
/* A frame that says which module the frames inside of it are for. */
const isModule = (f) => f.kind !== "native" && !f.file && /^import /.test(f.function);
const sampled = (context) => (context.profile || {}).mode === "sampled";

/* The variance of one sample of blocks of n bytes: a stack with few samples errs by one more than they tell. */
function varOfSample(n, mean) {
    if (!(n > 0) || !(mean > 0)) return 0;
    const w = -1 / Math.expm1(-n / mean);
    return n * n * w * (w - 1);
}

/* Functions that hand on what others ask for, as bindings/report/src/wrapper.c finds them: a frame of machine code
 * is one by its name, or where a quarter of the stacks end in it. */
function wrappersOf(context) {
    const frames = context.frames || [], native = frames.map((f) => f.kind === "native");
    const stacks = (context.stacks || []).map((s) => s.frames).filter((s) => s.every((f) => native[f]));
    const wrappers = new Set(), known = /alloc|strdup|strndup|memdup|operator new/i;
    for (let round = 0, more = true; round < 4 && more; round++) {
        const ends = new Map();
        let all = 0;
        more = false;
        for (const s of stacks) {
            const at = s.findIndex((f) => !wrappers.has(frames[f].function));
            if (at < 0 || at + 1 >= s.length) continue;
            const name = frames[s[at]].function, end = ends.get(name) || { stacks: 0, callers: new Set() };
            ends.set(name, end);
            end.callers.add(frames[s[at + 1]].function);
            end.stacks++;
            all++;
        }
        for (const [name, end] of ends) {
            const many = end.callers.size >= 4 && all >= 16 && end.stacks * 4 >= all;
            if (!many && !(end.callers.size >= 2 && known.test(name))) continue;
            wrappers.add(name);
            more = true;
        }
    }
    return wrappers;
}

/* The frame that a stack stands for: the innermost line of an interpreter, else the innermost function that is no
 * wrapper. */
const siteOf = (numbers, of) => numbers.find((f) => !of.native[f] && of.files[f]) ?? numbers.find((f) => !of.native[f]) ??
    numbers.find((f) => !of.wrappers[f]) ?? numbers[0];

/* Rows of all contexts; stacks with the outermost frame first. Those of one key are the same stack, also of
 * another process. */
function stacksOf(whole) {
    const rows = [], contexts = namesOf(whole);
    for (const [at, context] of whole.contexts.entries()) {
        const frames = context.frames || [], names = frames.map(frameText);
        const of = { names, native: frames.map((f) => f.kind === "native"), imports: frames.map(isImport), modules: frames.map(isModule),
                     files: frames.map((f) => !!f.file) }, wrappers = wrappersOf(context);
        of.wrappers = frames.map((f) => f.kind === "native" && wrappers.has(f.function));
        const same = frames.map((f) => numberOf(JSON.stringify([f.function, f.file || "", f.line || 0, f.module || ""])));
        const histories = new Map((context.histories || []).map((h) => [h.stack, h]));
        const mean = sampled(context) ? context.profile.mean_bytes : 0;
        for (const s of context.stacks || []) {
            const site = siteOf(s.frames, of);
            const label = s.label || "unlabelled";
            rows.push({
                id: s.id, at, context: contexts[at], label, of, numbers: s.frames, history: histories.get(s.id), seen: null,
                site: site === undefined ? "?" : names[site], where: "",
                key: before ? JSON.stringify([contexts[at], label, ...s.frames.map((f) => same[f])]) : "",
                live: s.live_bytes, peak: s.peak_bytes || 0, alloc: s.alloc_bytes || 0, blocks: s.live_blocks,
                pinned: s.pinned_bytes || 0, change: 0, kept: 0,
                live_var: (s.live_bytes_error || 0) ** 2, peak_var: (s.peak_bytes_error || 0) ** 2,
                alloc_var: (s.alloc_bytes_error || 0) ** 2, change_var: 0, kept_var: 0,
                one_var: mean ? varOfSample(s.live_bytes / s.live_blocks, mean) : 0,
            });
        }
    }
    return rows;
}

/* The stack of a row, the outermost frame first, and the innermost line of an interpreter. */
const framesOf = (row) => row.numbers.map((f) => row.of.names[f]).reverse();
/* The place of the innermost module that it was imported for among the frames that are seen: those before it are inside. */
function moduleOf(row) {
    const at = row.seen.findIndex((f) => row.of.names[f] === row.module);
    return at < 0 ? row.seen.length : at;
}
const lineOf = (row) => row.of.names[row.numbers.find((f) => !row.of.native[f] && row.of.files[f])];

function merged(list) {
    const byKey = new Map();
    for (const row of list) {
        const there = byKey.get(row.key);
        if (!there) {
            byKey.set(row.key, { ...row });
            continue;
        }
        there.one_var = Math.max(there.one_var, row.one_var);
        for (const value of ["live", "peak", "alloc", "blocks", "live_var", "peak_var", "alloc_var"]) there[value] += row[value];
    }
    return byKey;
}

const NONE = { live: 0, peak: 0, alloc: 0, blocks: 0, live_var: 0, peak_var: 0, alloc_var: 0, one_var: 0 };
const runOf = (whole) => [whole.process.pid, ...whole.contexts.map((c) => (c.profile || {}).started_ns)].join();

/* The same as that of `hakmem diff`: two runs err independently, and of one run only what came and went can err. */
function varOfChange(now, old, oneRun) {
    let v = now.live_var + old.live_var;
    const made = now.alloc_var - old.alloc_var, freed = made - (now.live_var - old.live_var);
    if (oneRun && made >= 0 && freed >= 0) v = Math.min(v, made + freed);
    return v > 0 || now.live !== old.live ? v + Math.max(now.one_var, old.one_var) : 0;
}

/* What changed, and which of these changes the samples alone explain: those within so many errors that if nothing
 * had changed, all were in 99 of 100 comparisons. */
function compared(list) {
    const old = merged(stacksOf(before)), all = [...merged(list).values()];
    const oneRun = !!report.process.pid && runOf(report) === runOf(before);
    for (const r of all) {
        const was = old.get(r.key) ?? NONE;
        r.change = r.live - was.live;
        r.change_var = varOfChange(r, was, oneRun);
        old.delete(r.key);
    }
    for (const gone of old.values())
        all.push({ ...gone, ...NONE, change: -gone.live, change_var: varOfChange(NONE, gone, oneRun) });
    const estimates = all.filter((r) => r.change !== 0 && r.change_var > 0).length;
    const wide = estimates ? Math.sqrt(2 * Math.log(100 * estimates)) : 0;
    for (const r of all) r.noise = r.change_var > 0 && Math.abs(r.change) <= wide * Math.sqrt(r.change_var);
    return all;
}

const stacks = stacksOf(report);
const rows = before ? compared(stacks) : stacks;
const sum = (list, value) => list.reduce((n, x) => n + (value(x) || 0), 0);
const stat = (whole, name) => sum(whole.contexts, (c) => (c.stats || {})[name]);

/* ---- What is shown of stacks ---- */

/* What was chosen when it was last shown: there are a million looks at it, and each at the page would cost more. */
const chosen = { by: "live", group: "stack" };
const amount = (row) => (chosen.by === "change" && row.noise ? 0 : Math.max(0, row[chosen.by]));
const errorOf = (row) => Math.sqrt(row[`${chosen.by}_var`]);

/* Frames without those that are hidden, the innermost first, and the site among them. */
function look() {
    [chosen.by, chosen.group] = [$("by").value, $("group").value];
    const [imports, natives] = [$("imports").checked, $("natives").checked];
    for (const row of rows) {
        const { names, native } = row.of;
        let seen = row.numbers;
        if (imports) seen = seen.filter((f) => !row.of.imports[f]);
        if (natives && seen.some((f) => !native[f])) seen = seen.filter((f) => !native[f]);
        row.seen = seen;
        row.module = names[row.numbers.find((f) => row.of.modules[f])] ?? "";
        row.inside = moduleOf(row);
        row.where = imports ? names[siteOf(seen, row.of)] ?? row.site : row.site;
    }
}
