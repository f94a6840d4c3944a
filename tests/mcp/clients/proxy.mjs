// Runs a program that cannot show a key against a server that wants one: `proxy.mjs URL KEY PROGRAM ARG…`, where the argument PROXY
// stands for the address to use. A page of the proxy's own address becomes one that the server was told to let in; all else is passed on.
import http from "node:http";
import { spawn } from "node:child_process";

const [url, key, program, ...args] = process.argv.slice(2);
const target = new URL(url);
const proxy = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${key}` };
  if (headers.origin === `http://localhost:${proxy.address().port}`) headers.origin = "http://localhost:1";
  const passed = http.request({ host: target.hostname, port: target.port, path: target.pathname, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  passed.on("error", () => response.destroy());
  response.on("close", () => passed.destroy());
  request.pipe(passed);
});
proxy.listen(0, "127.0.0.1", () => {
  const address = `http://localhost:${proxy.address().port}/mcp`;
  const child = spawn(program, args.map((arg) => (arg === "PROXY" ? address : arg)), { stdio: "inherit" });
  child.on("exit", (code) => process.exit(code ?? 1));
});
