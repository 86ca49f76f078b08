// One session of a TypeScript client with the server under test, told by a plan on the command line.
// Run from the peer's directory with the script on stdin, so that the peer's own packages resolve.
const plan = JSON.parse(process.argv[2]);
const legacy = plan.peer === "ts-sdk";
const name = legacy ? "@modelcontextprotocol/sdk/client/" : "@modelcontextprotocol/client";
const { Client } = await import(legacy ? `${name}index.js` : name);
const { StdioClientTransport } = await import(legacy ? `${name}stdio.js` : `${name}/stdio`);

const info = { name: plan.peer, version: "1" };
const client = legacy ? new Client(info) : new Client(info, { versionNegotiation: { mode: plan.mode } });
const [command, ...args] = plan.command;
const transport = new StdioClientTransport({ command, args, env: plan.env, cwd: plan.cwd, stderr: "pipe" });
const said = [];
transport.stderr?.on("data", (part) => said.push(part));
const problems = [];
client.onerror = (error) => problems.push(String(error));

async function attempt(call) {
  try {
    return { result: await client.callTool(call) };
  } catch (error) {
    return { error: { code: error.code ?? null, message: error.message } };
  }
}

await client.connect(transport);
const listed = await client.listTools();
const calls = [];
for (const call of plan.calls) calls.push(await attempt(call));
const together = await Promise.all(plan.together.map(attempt));
const report = {
  version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null,
  server: client.getServerVersion() ?? null,
  capabilities: client.getServerCapabilities() ?? null,
  instructions: client.getInstructions() ?? null,
  tools: listed.tools,
  calls,
  together,
  problems,
};
await client.close();
report.stderr = Buffer.concat(said).toString();
process.stdout.write(JSON.stringify(report) + "\n");
