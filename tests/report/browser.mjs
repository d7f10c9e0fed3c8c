// Starts headless Chromium by playwright's folder. Ends the process with 77, skipped, where there is none.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";

export async function launch(playwright, args = ["--disable-gpu"]) {
    const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
    if (!chromium) {
        console.log("no chromium (Debian package: chromium)");
        process.exit(77);
    }
    const { chromium: kind } = createRequire(import.meta.url)(playwright);
    try {
        return await kind.launch({ executablePath: chromium, args: ["--no-sandbox", ...args] });
    } catch (error) {
        console.log(`chromium does not start here: ${String(error).split("\n")[0]}`);
        process.exit(77);
    }
}
