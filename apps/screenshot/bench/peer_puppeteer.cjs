// An HTTP server that takes pictures with puppeteer-cluster. Arguments: the path of Chromium, the number of tabs, the time limit in milliseconds, flags of Chromium.
const { Cluster } = require("puppeteer-cluster");
const puppeteer = require("puppeteer-core");
const http = require("node:http");

const [executablePath, tabs, limit, ...args] = process.argv.slice(2);

(async () => {
	const cluster = await Cluster.launch({
		concurrency: Cluster.CONCURRENCY_CONTEXT,
		maxConcurrency: Number(tabs),
		timeout: Number(limit),
		puppeteer,
		puppeteerOptions: {
			executablePath,
			headless: true,
			args,
		},
	});
	await cluster.task(async ({ page, data }) => {
		await page.setViewport({ width: 1280, height: 800 });
		await page.goto(data.url, { waitUntil: "load", timeout: Number(limit) });
		return await page.screenshot({ type: "png", fullPage: data.full });
	});
	const server = http.createServer(async (request, response) => {
		const query = new URL(request.url, "http://localhost").searchParams;
		try {
			const picture = await cluster.execute({ url: query.get("url"), full: query.get("full") === "true" });
			response.writeHead(200, { "Content-Type": "image/png" });
			response.end(picture);
		} catch (error) {
			response.writeHead(502);
			response.end(String(error).slice(0, 300));
		}
	});
	server.listen(0, "127.0.0.1", () => console.log("listening on " + server.address().port));
})();
