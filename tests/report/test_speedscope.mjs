// Opens what the command wrote in speedscope itself, in headless Chromium: playwright's folder, speedscope's, the file
// and one for a script.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

import { launch } from "./browser.mjs";

const [playwright, speedscope, file, script] = process.argv.slice(2);
const args = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files"];
const browser = await launch(playwright, args);

try {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    // As speedscope's own command does it.
    writeFileSync(script, `speedscope.loadFileFromBase64("a.json", "${readFileSync(file).toString("base64")}")`);
    await page.goto(`file://${speedscope}/index.html#localProfilePath=${script}`);
    await page.getByText("live (1/3)").waitFor({ timeout: 30_000 });
    assert.equal(await page.title(), "live - speedscope");
    await page.getByText("Sandwich").click();
    await page.getByText("main chunk").first().waitFor({ timeout: 30_000 });
    const rows = (await page.$$eval("table tr", (all) => all.map((row) => row.innerText))).map((row) => row.trim().split(/\s*\n\s*|\t/));
    const of = (name) => rows.find((row) => row.some((cell) => cell.startsWith(name)));
    for (const name of ["main chunk", "parse", "malloc", "table", "string"]) assert.ok(of(name), `${name} of ${JSON.stringify(rows)}`);
    // Itself and with its callees, in speedscope's words: bytes of 4,300,001.
    assert.match(of("table").join(" "), /3\.81 MB|4\.00 MB/);
    assert.match(of("main chunk").join(" "), /4\.10 MB|4\.30 MB/);
    assert.deepEqual(faults, []);
} finally {
    await browser.close();
}
console.log("passed");
