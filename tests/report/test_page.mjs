// The page in headless Chromium: opens, sorts, zooms, filters, and has the numbers of the report.
// node test_page.mjs PLAYWRIGHT HAKMEM FOLDER, which holds a.json, b.json, bare.json, less.json, twice.json, once.json,
// marked.json, many.json, full.json, resident.json, grown.json, noisy.json and windows.json.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { launch } from "./browser.mjs";

const [playwright, hakmem, folder] = process.argv.slice(2);
const browser = await launch(playwright);

// One tab for all pages of the same options: a process of the browser for each page would take most of the time.
const tabs = new Map();
async function open(name, options, ...files) {
    execFileSync(hakmem, ["html", "-o", `${folder}/${name}.html`, ...files.map((f) => `${folder}/${f}.json`)]);
    const kind = JSON.stringify(options);
    if (!tabs.has(kind)) tabs.set(kind, await browser.newPage(options));
    const page = tabs.get(kind);
    const faults = [];
    page.removeAllListeners();
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("request", (request) => {
        if (!request.url().startsWith("file:")) faults.push(request.url());
    });
    await page.goto(`file://${folder}/${name}.html`);
    await page.waitForSelector("#path button");
    page.faults = faults;
    return page;
}

const values = (page, column) =>
    page.$$eval(`#stacks tbody td:nth-child(${column})`, (cells) => cells.map((c) => Number(c.dataset.value)));
const total = (page) => page.$eval("#path button:last-child", (b) => Number(b.dataset.value));
// The labels of the treemap; their sites have all of their bytes.
const tiles = async (page) => {
    const [labels, sites] = await Promise.all(["#map .label", "#map div:not(.label)"].map((which) =>
        page.$$eval(which, (all) => all.map((t) => [t.title, Number(t.dataset.value)]))));
    const sum = (list) => list.reduce((n, t) => n + t[1], 0);
    assert.equal(Math.round(sum(sites)), Math.round(sum(labels)));
    assert.equal(Math.round(sum(labels)), Math.round(await total(page)));
    return labels.map((l) => l[0]).sort();
};
const wide = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

try {
    const report = JSON.parse(readFileSync(`${folder}/a.json`));
    const context = report.contexts[0];
    const marks = JSON.parse(readFileSync(`${folder}/marked.json`)).contexts[0].marks;
    const live = context.stacks.map((s) => s.live_bytes).filter((n) => n > 0).sort((a, b) => b - a);
    const alloc = context.stacks.filter((s) => s.live_bytes > 0).map((s) => s.alloc_bytes).sort((a, b) => b - a);
    const sum = (list) => list.reduce((a, b) => a + b, 0);
    for (const options of [
        { viewport: { width: 1280, height: 900 }, colorScheme: "light" },
        { viewport: { width: 390, height: 800 }, colorScheme: "dark" },
    ]) {
        const page = await open("a", options, "a");
        assert.equal(await page.title(), "lua a.lua: hakmem");
        assert.deepEqual(await values(page, 1), live);
        assert.equal(await page.textContent("#none"), "1 more stack has none of it.");
        assert.match(await page.textContent("#estimate"), /^Estimates of samples, one in 512\.00 KiB: 4\.10 MiB ± 488\.28 KiB beside 4\.10 MiB exactly/);
        assert.equal(await total(page), sum(live));
        assert.equal(await page.$eval("#cards b", (b) => Number(b.dataset.value)), 4300016);
        assert.deepEqual(await page.$$eval(".verdict", (all) => all.map((v) => v.textContent)), [
            "7 stacks are missing: the table of the profile was full",
            "Leak? parse (a;b.lua:12), table: grew in 9 of 9 windows",
            "Grows: </script><b>&\u001b[31m, unlabelled: grew a lot",
            "Grows: main chunk (a;b.lua:90), string: grew a little",
        ]);
        assert.deepEqual(await tiles(page), ["string 292.97 KiB", "table 3.81 MiB"]);
        await page.click("#stacks tbody tr");
        assert.equal(await page.textContent("#stacks .frames"),
                     "malloc [libc.so.6]\nparse (a;b.lua:12)\nmain chunk (a;b.lua:90)");
        await page.click("#stacks tbody tr");
        assert.equal(await page.$("#stacks .frames"), null);
        const [first, site] = await Promise.all(["td", ".name:last-child"].map((which) =>
            page.locator(`#stacks tbody tr ${which}`).first().boundingBox()));
        assert.equal(site.y > first.y, options.viewport.width < 700, "the site is below the numbers on a phone");
        assert.ok(site.x + site.width <= options.viewport.width, "the site is on the screen");
        await page.click("#stacks th[data-key=alloc]");
        assert.deepEqual(await values(page, 4), alloc);
        await page.click("#stacks th[data-key=alloc]");
        assert.deepEqual(await values(page, 4), alloc.reverse());
        alloc.reverse();
        await page.selectOption("#by", "peak");
        assert.equal(await total(page), sum(context.stacks.map((s) => s.peak_bytes)));
        await page.selectOption("#by", "live");
        await page.selectOption("#group", "label");
        assert.match(await page.textContent("#flame"), /\[table\]/);
        // Into the frame of the label: 4,000,000 bytes.
        await page.locator("#flame g", { hasText: "[table]" }).first().click();
        await page.waitForFunction(() => document.querySelectorAll("#path button").length === 3);
        assert.equal(await total(page), 4_000_000);
        await page.click("#path button");
        assert.equal(await total(page), sum(live));
        await page.fill("#filter", "parse");
        await page.waitForFunction(() => document.querySelectorAll("#stacks tbody tr").length === 1);
        assert.equal(await total(page), 4_000_000);
        assert.ok(await page.isHidden("#memory"), "a report without parts has no table of them");
        assert.ok(await page.isHidden("#holes"));
        assert.deepEqual(await page.$$eval("#decisions li", (all) => all.map((d) => [d.className, d.textContent])), [
            ["try", "3.0 s: trys retained_bytes <at> 64 MiB"], ["keep", "5.0 s: keeps retained_bytes <at> 64 MiB"],
            ["freeze", "7.0 s: freezes retained_bytes <at> 64 MiB"]]);
        const drawn = await page.evaluate(() => {
            const said = [];
            const proto = CanvasRenderingContext2D.prototype, old = proto.fillText;
            proto.fillText = function (text, x, y) {
                const width = this.measureText(text).width, from = this.textAlign === "right" ? x - width : x;
                said.push({ text, y, from, to: from + width });
                return old.call(this, text, x, y);
            };
            timeline();
            return new Promise((done) => setTimeout(() => { proto.fillText = old; done(said); }));
        });
        const names = drawn.filter((d) => ["request 17", "keep", "freeze", "try"].includes(d.text));
        assert.deepEqual(names.map((d) => d.text), ["request 17", "keep", "freeze"]);
        for (const [i, d] of names.entries())
            for (const other of names.slice(0, i))
                assert.ok(d.y !== other.y || d.from >= other.to || other.from >= d.to, `${d.text} lies over ${other.text}`);
        assert.equal(await page.$$eval("#plot canvas", (all) => all.length), 1);
        assert.equal(await page.$$eval("script:not([id])", (all) => all.length), 4);
        assert.ok((await wide(page)) <= 0, "wider than the screen");
        const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(back === "rgb(255, 255, 255)", options.colorScheme === "light");
        await page.screenshot({ path: `${folder}/${options.colorScheme}.png`, fullPage: true });
        assert.deepEqual(page.faults, []);
        // A long command line leaves the first screen to what was asked for, and what is missing is said in it.
        const long = await open("full", options, "full");
        assert.equal(await long.textContent("h1"), "haklua5.4 check");
        const box = (which) => long.locator(which).first().boundingBox();
        assert.ok((await box("h1")).height < 40, "the title is one line");
        const [said, flame] = [await box(".verdict:has-text('233 stacks are missing')"), await box("#flame")];
        assert.ok(said.y + said.height < flame.y && flame.y < options.viewport.height, `the flame graph is at ${flame.y}`);
        assert.ok((await wide(long)) <= 0, "wider than the screen");
        await long.click("#command summary");
        assert.match(await long.textContent("#line"), /199\.lua$/);
        await long.screenshot({ path: `${folder}/full-${options.colorScheme}.png` });
        // The parts of the resident memory: bars that follow each other, and who keeps free memory from going back.
        const parts = await open("resident", options, "resident");
        assert.deepEqual(await parts.$$eval("#memory tbody tr", (all) => all.map((row) => [...row.cells].map((c) => c.textContent))), [
            ["live: table", "4.00 MiB", "50.0 %", "a profile names their lines"], ["live: string", "1.00 MiB", "12.5 %", ""],
            ["free between live blocks", "2.00 MiB", "25.0 %", "held by the blocks beside"],
            ["lib<b>\u001b[31m.so", "512.00 KiB", "6.3 %", "code"], ["other", "512.00 KiB", "6.3 %", ""]]);
        const bars = await parts.$$eval("#memory .bar", (all) => all.map((b) => b.getBoundingClientRect()).map((r) => [r.left, r.right]));
        for (const [i, [left]] of bars.entries()) if (i) assert.ok(Math.abs(left - bars[i - 1][1]) < 2, `bar ${i} begins at ${left}`);
        assert.match(await parts.textContent("#holes > p"), /^3\.25 MiB are free .* back 2\.13 MiB/);
        assert.deepEqual(await parts.$$eval("#classes tbody tr", (all) => all.map((row) => [...row.cells].map((c) => c.textContent))),
                         [["2.00 MiB", "3.00 MiB", "64 B", "900"], ["128.00 KiB", "256.00 KiB", "96 B", "70"]]);
        assert.deepEqual(await parts.$$eval("#pins tbody tr", (all) => all.map((row) => [...row.cells].map((c) => c.textContent))),
                         [["2.00 MiB", "40,000", "parse (a;b.lua:12)"], ["64.00 KiB", "3,000", "main chunk (a;b.lua:90)"]]);
        assert.ok((await wide(parts)) <= 0, "wider than the screen");
        await parts.screenshot({ path: `${folder}/resident-${options.colorScheme}.png`, fullPage: true });
        assert.deepEqual(parts.faults, []);
    }
    const larger = await open("larger", {}, "grown", "resident");
    assert.deepEqual(await larger.$$eval("#memory tbody td:nth-child(2)", (all) => all.slice(0, 2).map((c) => c.textContent)),
                     ["5.00 MiB (+1.00 MiB)", "1.00 MiB (+0 B)"]);

    const page = await open("diff", {}, "a", "b");
    assert.equal(await page.textContent("#other"), "Compared with process 71, 2026-11-23T09:43:20Z");
    assert.deepEqual(await page.evaluate(() => ["f (/a/b/c.lua:12)", "function </a/b/init.lua:7> (/a/b/init.lua:9)", "f (init.lua:1)",
        "<module> (/x/pkg/__init__.py:3)", "all", "malloc [/usr/lib/libc.so.6]", "g (c.lua:2)"].map(brief)),
        ["f (c.lua:12)", "function <b/init.lua:7> (b/init.lua:9)", "f (init.lua:1)", "<module> (pkg/__init__.py:3)", "all",
         "malloc [/usr/lib/libc.so.6]", "g (c.lua:2)"]);
    assert.deepEqual((await values(page, 1)).slice(0, 1), [3_000_000]);
    assert.equal(await total(page), 3_000_000);
    assert.equal(await page.textContent("#stacks tbody td:nth-child(2)"), "512.00 KiB", "a change has its error");
    assert.deepEqual(page.faults, []);

    // What a report leaves out is not shown as nothing.
    for (const files of [["bare"], ["bare", "b"], ["a", "less"]]) {
        const bare = await open(files.join("-"), {}, ...files);
        const cards = await bare.$$eval("#cards span", (all) => all.map((c) => c.textContent.replace(/ \(.*/, "")));
        const known = ["live at the end", "live at the peak", "committed"];
        assert.deepEqual(cards, files[0] === "bare" ? known : [...known, "process resident", "peak resident"]);
        assert.equal(await bare.textContent("#process"), files[0] === "bare" ? "" : "process 71, lua 5.4.4, 2026-11-23T09:43:20Z");
        if (files.length > 1) assert.equal(await bare.textContent("#cards .card:last-child span"),
                                           files[0] === "bare" ? "committed (+0 B)" : "peak resident");
        assert.ok(!(await bare.textContent("body > p, h1")).includes("undefined"));
        assert.deepEqual(bare.faults, []);
    }

    // Rows of one stack are one where reports are compared, and all that is shown is what grew.
    const twice = await open("twice", {}, "twice", "once");
    assert.equal(await total(twice), 1000);
    assert.deepEqual((await values(twice, 1)).filter((n) => n !== 0), [1000]);
    assert.equal((await values(twice, 1)).length, 1);
    assert.equal(await twice.textContent(".verdict:has-text('Leak?')"), "Leak? parse (a;b.lua:12), table two: grew in 9 of 9 windows");
    assert.deepEqual(await twice.$$eval("#labels td:last-child", (all) => [...new Set(all.map((c) => c.textContent))].sort()),
                     ['lua "x"\n', 'lua "x"\n#2']);
    assert.deepEqual(twice.faults, []);

    // Without a learner the timeline has the marks of the profile, and what the report says.
    const marked = await open("marked", {}, "marked");
    assert.equal(await marked.isVisible("#time"), true);
    assert.deepEqual(await marked.evaluate(() => pointsOf(report.contexts[0]).map((p) => p.live_bytes)),
                     [...marks.map((m) => m.live_bytes), context.stats.live_bytes]);
    assert.deepEqual(await marked.evaluate(() => plotted.data.slice(1)),
                     ["live", "committed", "resident"].map((name) => [...marks.map((m) => m[`${name}_bytes`]),
                         name === "resident" ? report.memory.resident_bytes : context.stats[`${name}_bytes`]]));
    assert.deepEqual(marked.faults, []);

    // A change that the samples explain is in the table alone.
    const noisy = await open("noisy", {}, "a", "noisy");
    assert.equal(await total(noisy), 0);
    assert.deepEqual(await values(noisy, 1), [1_000_000]);
    assert.equal(await noisy.getAttribute("#stacks tbody tr", "class"), "noise");
    assert.match(await noisy.textContent("#estimate"), /Left out, and below in the table: 1 /);

    for (const options of [{ viewport: { width: 1280, height: 900 } }, { viewport: { width: 390, height: 844 }, colorScheme: "dark" }]) {
        const timed = await open("windows", options, "windows");
        assert.match(await timed.textContent(".verdict"), /^3 stacks are missing: .* they had 5\.00 MiB/);
        // Small frames are one.
        assert.match(await timed.textContent("#flame"), /other: 3000 small frames/);
        // Own bytes, and with those that were called.
        await timed.waitForSelector("#functions tbody tr");
        assert.equal(await timed.textContent("#functions tbody td:nth-child(3)"), "malloc [libc.so.6]");
        await timed.click("#functions th[data-key=total]");
        const functions = Object.fromEntries(await timed.$$eval("#functions tbody tr", (all) =>
            all.map((r) => [r.cells[2].textContent, [Number(r.cells[0].dataset.value), Number(r.cells[1].dataset.value)]])));
        assert.deepEqual(functions["keep (app.py:7)"], [0, 4_000_000]);
        assert.deepEqual(functions["malloc [libc.so.6]"], [4_000_000, 4_000_000]);
        assert.equal(await timed.textContent("#functions tbody td:nth-child(3)"), "<module> (app.py:90)");
        // Imports and machine code are hidden where one likes.
        await timed.check("#imports");
        await timed.check("#natives");
        assert.doesNotMatch(await timed.textContent("#flame"), /get_data|malloc/);
        assert.equal(await total(timed), 9_000_000);
        assert.deepEqual(await timed.$$eval("#stacks tbody td:last-child", (all) => all.slice(0, 2).map((c) => c.textContent)),
                         ["keep (app.py:7)", "<module> (app.py:90)"]);
        await timed.uncheck("#imports");
        await timed.uncheck("#natives");
        // By the module that was imported, the innermost one.
        await timed.selectOption("#group", "import");
        const modules = await timed.$$eval("#flame g.frame", (all) => all.filter((g) => g.getAttribute("aria-level") === "3").map((g) => g.getAttribute("aria-label")));
        assert.deepEqual(modules.map((s) => s.replace(/,.*/, "")).sort(), ["import json.decoder: 1.91 MiB", "no import: 6.68 MiB"]);
        assert.equal(await total(timed), 9_000_000);
        // From the inside out.
        await timed.selectOption("#group", "inverted");
        const second = await timed.$$eval("#flame g.frame", (all) => all.filter((g) => g.getAttribute("aria-level") === "3").map((g) => g.getAttribute("aria-label")));
        assert.ok(second.some((s) => s.startsWith("malloc [libc.so.6]: 3.81 MiB, 44.4 %")), second.join("\n"));
        await timed.selectOption("#group", "stack");
        // The keyboard: from frame to frame, into one and out.
        await timed.focus("#flame g.frame[tabindex='0']");
        for (let i = 0; i < 3; i++) await timed.keyboard.press("ArrowDown");
        assert.match(await timed.textContent("#hover"), /^(keep|get_data|other|small)/);
        await timed.keyboard.press("ArrowUp");
        await timed.keyboard.press("Enter");
        await timed.waitForFunction(() => document.querySelectorAll("#path button").length === 3);
        await timed.keyboard.press("Enter");
        await timed.waitForFunction(() => document.querySelectorAll("#path button").length === 2);
        await timed.click("#path button");
        for (const which of ["#stacks th", "#stacks tbody tr", "#map div:not(.label)"]) assert.equal(await timed.getAttribute(which, "tabindex"), "0", which);
        assert.equal(await timed.getAttribute("#stacks th.on", "aria-sort"), "descending");
        await timed.focus("#stacks tbody tr");
        await timed.keyboard.press("Enter");
        assert.equal(await timed.getAttribute("#stacks tbody tr", "aria-expanded"), "true");
        assert.match(await timed.getAttribute("#stacks .history", "aria-label"), /^live over .*: 0 B, 0 B, 0 B, 976/);
        // An interval, by the controls and by the mouse.
        assert.match(await timed.textContent(".u-legend"), /live:?\s*4\.10 MiB/);
        await timed.selectOption("#from", String(3e9));
        assert.equal(await total(timed), 4_000_000);
        await timed.selectOption("#to", String(5e9));
        assert.equal(await total(timed), 2_000_000);
        assert.match(await timed.textContent("#estimate"), /^Allocated between 2 s and 4 s, and still live/);
        assert.deepEqual(await values(timed, 1), [2_000_000]);
        await timed.click("#all");
        assert.equal(await total(timed), 9_000_000);
        const over = timed.locator("#plot .u-over");
        await over.scrollIntoViewIfNeeded();
        const box = await over.boundingBox();
        await timed.mouse.move(box.x + 1, box.y + 50);
        await timed.mouse.down();
        await timed.mouse.move(box.x + box.width * 0.15, box.y + 60, { steps: 4 });
        await timed.mouse.up();
        assert.equal(await timed.inputValue("#by"), "kept");
        assert.ok((await total(timed)) < 9_000_000);
        await timed.click("#all");
        // From a verdict to its stack.
        await timed.click("button.verdict");
        assert.match(await timed.textContent("#stacks .frames"), /^malloc \[libc\.so\.6\]\nkeep/);
        assert.equal(await timed.inputValue("#filter"), "keep (app.py:7)");
        assert.ok((await wide(timed)) <= 0, "wider than the screen");
        await timed.screenshot({ path: `${folder}/windows-${options.viewport.width}.png`, fullPage: true });
        assert.deepEqual(timed.faults, []);
    }

    const many = JSON.parse(readFileSync(`${folder}/many.json`)).contexts[0].stacks;
    const large = await open("many", {}, "many");
    assert.equal(await total(large), sum(many.map((s) => s.live_bytes)));
    assert.equal((await values(large, 1)).length, 200);
    assert.equal((await tiles(large)).length, new Set(many.map((s) => s.label)).size);
    assert.match(await large.textContent("#map"), /\d+ (other )?sites/);
    assert.ok((await large.$$eval("#flame g", (all) => all.length)) < 5000, "too many frames are drawn");
    // What is too narrow to be seen has no nodes before somebody zooms in: there are 700,000.
    const nodes = () => large.evaluate(() => {
        let n = 0;
        const count = (node) => { n++; node.children?.forEach(count); };
        count(tree);
        return n;
    });
    assert.ok((await nodes()) < 150_000, `${await nodes()} nodes`);
    const outermost = Math.max(...many.map((s) => s.frames.at(-1)));
    const within = many.filter((s) => s.frames.at(-1) === outermost);
    await large.evaluate((name) => zoom([...childrenOf(tree).values()].find((c) => c.name.startsWith(`${name} `))), `function_${outermost}`);
    assert.equal(await total(large), sum(within.map((s) => s.live_bytes)));
    assert.ok((await large.$$eval("#flame g.frame", (all) => all.length)) > 40, "what is below a frame is found when one zooms in");
    await large.evaluate(() => zoom(tree));
    await large.click("#stacks th[data-key=blocks]");
    assert.equal((await values(large, 5))[0], Math.max(...many.map((s) => s.live_blocks)));
    assert.deepEqual(large.faults, []);
} finally {
    await browser.close();
}
console.log("passed");
