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
                             (r) => (lineOf(r) && lineOf(r) !== r.site ? `${r.site} < ${lineOf(r)}` : r.site)).sort((a, b) => b[1][0] - a[1][0]);
    $("pins").hidden = sites.length === 0;
    for (const [site, [n, blocks]] of sites.slice(0, 10)) {
        const row = element($("pins").querySelector("tbody"), "tr");
        element(row, "td", bytes(n)).dataset.value = n;
        element(row, "td", plain(blocks));
        element(row, "td", site, "name");
    }
}

