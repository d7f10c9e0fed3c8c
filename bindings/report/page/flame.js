/* ---- Flame graph ---- */

const SMALLEST = 1 / 1000; // share below which frames are one until one zooms in
const colour = d3.scaleOrdinal(d3.schemeTableau10.map((c) => d3.interpolateRgb(c, "#fff")(0.35)));
let tree, shown, treeError;

/* A node of the tree: the stacks that come through it. What is below is found when somebody looks: of thousands of
 * stacks most nodes are never wide enough to be seen. */
const nodeOf = (name, parent, depth) => ({ name, parent, depth, value: 0, rows: [], children: null });

/* The name of a row's node at this depth; undefined = its stack has ended. */
function nameAt(row, depth) {
    const { group } = chosen;
    if (report.contexts.length > 1 && depth-- === 0) return row.context;
    if (group === "label" && depth-- === 0) return `[${row.label}]`;
    if (group === "import" && depth-- === 0) return row.module || "no import";
    const outermost = group === "import" ? row.inside : row.seen.length;
    return row.of.names[row.seen[group === "inverted" ? depth : outermost - 1 - depth]];
}

function childrenOf(node) {
    if (node.children) return node.children;
    node.children = new Map();
    for (const row of node.rows) {
        const name = nameAt(row, node.depth);
        if (name === undefined) continue;
        let child = node.children.get(name);
        if (!child) node.children.set(name, (child = nodeOf(name, node, node.depth + 1)));
        child.value += amount(row);
        child.rows.push(row);
    }
    return node.children;
}

function grow(list) {
    const root = nodeOf("all", undefined, 0);
    root.rows = list.filter((row) => amount(row));
    root.value = sum(root.rows, amount);
    return root;
}

function pruned(node, least) {
    const children = [];
    let [few, rest] = [0, 0];
    for (const c of childrenOf(node).values()) {
        if (c.value >= least) children.push(pruned(c, least));
        else [few, rest] = [few + 1, rest + c.value];
    }
    if (rest >= least) children.push({ name: `other: ${few} small frames`, value: rest, other: true, children: [] });
    return { name: node.name, value: node.value, real: node, children };
}

/* Of a file its name, with its folder where many files have that name: a frame is narrow. */
function brief(name) {
    return name.replace(/([(<])(?:[^()<>]*\/)?([^()<>/]+\/(?:init\.lua|__init__\.py)|(?!init\.lua|__init__\.py)[^()<>/]+)(:\d+)(?=[)>])/g,
                        "$1$2$3");
}

const share = (n) => `${((n / tree.value) * 100).toFixed(1)} % of all`;
const told = (d) => `${d.data.name}: ${bytes(d.data.value)}, ${share(d.data.value)}`;

/* One frame takes part in the order of the Tab key; the arrows lead from frame to frame, Enter zooms in. */
function keys(svg) {
    const frames = svg.querySelectorAll("g.frame"), of = new Map();
    svg.setAttribute("role", "tree");
    svg.setAttribute("aria-label", "Flame graph: arrows lead from frame to frame, Enter zooms in");
    for (const g of frames) {
        const d = d3.select(g).datum();
        of.set(d, g);
        g.setAttribute("role", "treeitem");
        g.setAttribute("aria-level", d.depth + 1);
        g.setAttribute("aria-label", told(d));
        g.setAttribute("tabindex", d.parent ? -1 : 0);
        g.onfocus = () => ($("hover").textContent = told(d));
    }
    const beside = (d, step) => {
        const all = (d.parent?.children || [d]).filter((c) => of.has(c)).sort((a, b) => a.x0 - b.x0);
        return all[all.indexOf(d) + step];
    };
    const largest = (d) => (d.children || []).filter((c) => of.has(c)).sort((a, b) => b.value - a.value)[0];
    svg.onkeydown = (event) => {
        const g = event.target.closest("g.frame"), d = g && d3.select(g).datum();
        if (!d) return;
        if (event.key === "Enter" || event.key === " ") into(d);
        const next = { ArrowDown: () => largest(d), ArrowUp: () => d.parent, ArrowLeft: () => beside(d, -1),
                       ArrowRight: () => beside(d, 1), Home: () => d.ancestors().pop() }[event.key]?.();
        if (next || event.key === "Enter" || event.key === " " || event.key.startsWith("Arrow")) event.preventDefault();
        if (!next) return;
        g.setAttribute("tabindex", -1);
        of.get(next).setAttribute("tabindex", 0);
        of.get(next).focus();
    };
}

/* A click on what all frames are in leads out. */
function into(d) {
    const real = d?.data.real;
    if (!real) return;
    const focused = $("flame").contains(document.activeElement);
    setTimeout(() => {
        zoom(real === shown ? real.parent || real : real);
        if (focused) $("flame").querySelector("g.frame")?.focus();
    });
}

function zoom(node) {
    shown = node;
    $("path").replaceChildren();
    const way = [];
    for (let n = node; n; n = n.parent) way.unshift(n);
    for (const n of way.slice(-12)) {
        const wide = n === tree && treeError > 0 ? ` ± ${bytes(treeError)}` : "";
        const made = element($("path"), "button", `${n.name} ${bytes(n.value)}${wide}`);
        made.dataset.value = n.value;
        made.onclick = () => zoom(n);
    }
    $("flame").replaceChildren();
    $("hover").textContent = "";
    if (!node.value) {
        const none = $("by").value === "change" ? "No stack grew" : "No stack has any";
        return element($("flame"), "p", $("filter").value ? `${none} that has "${$("filter").value}"` : none);
    }
    const chart = flamegraph.default().width(Math.max(280, $("flame").clientWidth)).cellHeight(20).minFrameSize(1)
        .transitionDuration(0).inverted(true).sort(true).tooltip(false).selfValue(false)
        .getName((d) => brief(d.data.name))
        .setColorMapper((d) => (d.data.other ? "#c3c8d1" : colour(d.data.name.replace(/.*\(|:\d+\)$/g, ""))))
        .onHover((d) => ($("hover").textContent = told(d)))
        .onClick(into);
    d3.select("#flame").datum(pruned(node, node.value * SMALLEST)).call(chart);
    keys($("flame").querySelector("svg"));
}

/* Why sums of a sampled profile are not the exact ones above. */
function estimates(list) {
    const by = $("by").value;
    treeError = Math.sqrt(sum(list, (r) => (amount(r) ? r[`${by}_var`] : 0)));
    const of = report.contexts.filter(sampled), noise = rows.filter((r) => r.noise && r.change).length;
    const exact = { live: counted(report, "live_bytes"), peak: counted(report, "peak_bytes") }[by];
    const words = [];
    if (of.length && treeError > 0)
        words.push(`Estimates of samples, one in ${bytes(of[0].profile.mean_bytes)}` + (list.length === rows.length && exact
            ? `: ${bytes(tree.value)} ± ${bytes(treeError)} beside ${bytes(exact)} exactly.` : `; ± ${bytes(treeError)}.`));
    if (by === "change" && noise) words.push(`Left out, and below in the table: ${plain(noise)} that the samples alone explain.`);
    if (by === "kept") words.push(`${spanText()}. A stack with less than a 10,000th of what is live has no history.`);
    $("estimate").textContent = words.join(" ");
}
