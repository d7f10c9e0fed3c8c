/* ---- Tables ---- */

const ROWS = 200; // of a table, at first

/* What lived of a stack over time, as a line. */
function draw(place, row) {
    const at = boundaries(report.contexts[row.at]), values = [0, ...row.history.live, row.live];
    const [width, height, most] = [320, 44, Math.max(...values, 1)];
    const x = (i) => ((at[i] - at[0]) / (at[at.length - 1] - at[0] || 1)) * width, y = (n) => height - 2 - (n / most) * (height - 4);
    const svg = d3.select(place).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("class", "history").attr("role", "img")
        .attr("aria-label", `live over ${duration(at[at.length - 1] - at[0])}: ${values.map((n) => bytes(n)).join(", ")}`);
    svg.append("polyline").attr("points", values.map((n, i) => `${x(i).toFixed(1)},${y(n).toFixed(1)}`).join(" "));
    element(place, "p", `live over ${duration(at[at.length - 1] - at[0])}, at most ${bytes(most)}`);
}

/* Shows the stack of a row below it, the innermost frame first, or hides it again. */
function unfold(tr, row, columns) {
    const there = tr.nextSibling && tr.nextSibling.className === "frames";
    tr.setAttribute("aria-expanded", !there);
    if (there) return tr.nextSibling.remove();
    const below = document.createElement("tr");
    below.className = "frames";
    const cell = element(below, "td", framesOf(row).reverse().join("\n") || "no frames");
    cell.colSpan = columns;
    if (row.history) draw(element(cell, "div"), row);
    tr.after(below);
}

/* columns: of each its key, its name, whether it is a number, and how that is written. first: a row that stands in
 * front of the others. noise stays below. act: on a click. */
function table(place, columns, list, sorted, { rest, first, act, rows = ROWS } = {}) {
    const [head, body] = [$(place).querySelector("thead"), $(place).querySelector("tbody")];
    $(place).style.setProperty("--numbers", columns.filter((c) => c[2]).length);
    let [by, down, most] = [sorted, true, rows];
    const value = (row, key) => (key === "error" ? errorOf(row) : row[key]);
    function fill(focus) {
        head.replaceChildren();
        body.replaceChildren();
        const line = element(head, "tr");
        for (const [key, name, number] of columns) {
            const cell = element(line, "th", name + (key === by ? (down ? " ▾" : " ▴") : ""),
                                 (number ? "" : "name ") + (key === by ? "on" : ""));
            cell.dataset.key = key;
            cell.scope = "col";
            if (key === by) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
            button(cell, () => { [by, down] = [key, key === by ? !down : number]; fill(key); }, "columnheader");
            if (key === focus) cell.focus();
        }
        const order = (a, b) => {
            if (by === "change" && !a.noise !== !b.noise) return (down ? 1 : -1) * (a.noise ? -1 : 1);
            const [x, y] = [value(a, by), value(b, by)];
            return x < y ? -1 : x > y ? 1 : 0;
        };
        const all = [...list].sort((a, b) => (a === first ? -1 : b === first ? 1 : down ? order(b, a) : order(a, b)));
        for (const row of all.slice(0, most)) {
            const tr = element(body, "tr", undefined, row.noise ? "noise" : "");
            if (row.noise) tr.title = "The samples alone explain this change";
            for (const [key, , number, form] of columns) {
                const n = number ? value(row, key) : 0, cell = element(tr, "td", number ? form(n) : row[key], number ? "" : "name");
                if (number) cell.dataset.value = n;
            }
            tr.of = row;
            if (row.numbers) {
                tr.setAttribute("aria-expanded", false);
                button(tr, () => unfold(tr, row, columns.length), null);
            } else if (act) button(tr, () => act(row), null);
        }
        if (!rest) return;
        $(rest).textContent = all.length > most ? `${all.length - most} more ` : "";
        if (all.length > most) element($(rest), "button", "show").onclick = () => { most *= 5; fill(); };
    }
    fill();
}

const plain = (n) => Math.round(n).toLocaleString("en");
const size = (n) => bytes(n);
const error = (n) => (n >= 0.5 ? bytes(n) : "");

/* What functions hold themselves, and with all that they called. */
function functionsOf(list) {
    const all = new Map();
    for (const row of list) {
        const n = amount(row);
        if (!n) continue;
        for (const [i, frame] of row.seen.entries()) {
            const name = row.of.names[frame];
            let f = all.get(name);
            if (!f) all.set(name, (f = { name, own: 0, total: 0, seen: null }));
            if (f.seen !== row) f.total += n;
            f.seen = row;
            if (i === 0) f.own += n;
        }
    }
    return [...all.values()];
}

let picked = null; // the stack of a verdict

function show() {
    look();
    const wanted = $("filter").value.toLowerCase(), by = $("by").value;
    const text = (r) => [r.context, r.label, ...framesOf(r)].join("\n").toLowerCase();
    const list = wanted ? rows.filter((r) => text(r).includes(wanted)) : rows;
    tree = grow(list);
    estimates(list);
    zoom(tree);
    map(list);
    const columns = [["live", "live", true, size], ["error", "±", true, error], ["peak", "at the peak", true, size],
        ["alloc", "allocated", true, size], ["blocks", "blocks", true, plain], ["label", "label"], ["where", "site"]];
    if (by === "kept") columns.splice(0, 3, ["kept", "in the interval", true, size], ["live", "live", true, size]);
    if (before) columns.splice(0, 3, ["change", "change", true, (n) => bytes(n, true)], ["error", "±", true, error], ["live", "live", true, size]);
    const some = list.filter((r) => r[by] || r === picked);
    $("none").textContent = some.length < list.length ? `${plain(list.length - some.length)} more ${list.length - some.length === 1 ? "stack has" : "stacks have"} none of it.` : "";
    table("stacks", columns, some, by, { rest: "more", first: picked });
    clearTimeout(later);
    later = setTimeout(() => functions(list));
    picked = null;
}

/* Below all that is seen first, and a moment later. */
let later;
function functions(list) {
    const all = functionsOf(list);
    $("functions").hidden = all.length === 0;
    table("functions", [["own", "own", true, size], ["total", "with callees", true, size], ["name", "function"]], all, "own",
          { rest: "others", rows: 40, act: (f) => { $("filter").value = f.name; show(); $("filter").scrollIntoView({ block: "nearest" }); } });
}

/* Shows a stack, and all of its site. */
function pick(row) {
    const kept = rows.find((r) => r === row || (before && r.key === row.key));
    if (!kept) return;
    picked = kept;
    $("filter").value = kept.site === "?" ? "" : kept.site;
    show();
    const tr = [...$("stacks").querySelectorAll("tbody tr")].find((one) => one.of === kept);
    unfold(tr, kept, tr.cells.length);
    tr.focus();
    tr.scrollIntoView({ block: "center" });
}
