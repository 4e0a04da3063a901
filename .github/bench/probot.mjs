// Probot with an empty handler, from the folder that is the first argument.
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";
import { pathToFileURL } from "node:url";

const require = createRequire(process.argv[2] + "/");
const { createNodeMiddleware, createProbot } = await import(pathToFileURL(require.resolve("probot")));
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const env = {
  APP_ID: "1", PRIVATE_KEY: privateKey.export({ type: "pkcs1", format: "pem" }),
  WEBHOOK_SECRET: "it is a secret of the benchmark", WEBHOOK_PATH: "/webhook", LOG_LEVEL: "fatal", NODE_ENV: "production",
};
const middleware = await createNodeMiddleware((app) => { app.on("pull_request", () => {}); }, { webhooksPath: "/webhook", probot: createProbot({ env }) });
const server = createServer(async (req, res) => {
  if (!(await middleware(req, res))) { res.writeHead(404); res.end(); }
});
server.listen(0, "127.0.0.1", () => console.log("listening on 127.0.0.1:" + server.address().port));
