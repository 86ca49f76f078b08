// One session of a TypeScript client with the server under test, told by a plan on the command line.
// Run from the peer's directory with the script on stdin, so that the peer's own packages resolve.
const plan = JSON.parse(process.argv[2]);
const legacy = plan.peer === "ts-sdk";
let doing = "connecting";
setTimeout(() => {
  console.error(`still ${doing} after ${plan.deadline} s; problems: ${JSON.stringify(problems)}`);
  process.exit(1);
}, plan.deadline * 1000).unref();
const name = legacy ? "@modelcontextprotocol/sdk/client/" : "@modelcontextprotocol/client";
const { Client } = await import(legacy ? `${name}index.js` : name);
const { StdioClientTransport } = await import(legacy ? `${name}stdio.js` : `${name}/stdio`);

const problems = [];
const elicited = [];
const heard = new Promise((resolve, reject) => {
  const onChanged = (error, tools) => (error ? reject(error) : resolve(tools));
  plan.listChanged = { tools: { onChanged } };
});
const options = { capabilities: plan.answer ? { elicitation: { form: {} } } : {} };
if (!legacy) options.versionNegotiation = { mode: plan.mode };
if (plan.hears) options.listChanged = plan.listChanged;
const client = new Client({ name: plan.peer, version: "1" }, options);
client.onerror = (error) => problems.push(String(error));
if (plan.answer) {
  const request = legacy ? (await import("@modelcontextprotocol/sdk/types.js")).ElicitRequestSchema : "elicitation/create";
  client.setRequestHandler(request, async (asked) => {
    elicited.push(asked.params);
    return { action: "accept", content: plan.answer };
  });
}

const [command, ...args] = plan.command;
const transport = new StdioClientTransport({ command, args, env: plan.env, cwd: plan.cwd, stderr: "pipe" });
const said = [];
transport.stderr?.on("data", (part) => said.push(part));

async function attempt(call, options = {}) {
  try {
    return { result: await (legacy ? client.callTool(call, undefined, options) : client.callTool(call, options)) };
  } catch (error) {
    return { error: { code: error.code ?? null, message: error.message } };
  }
}

// The same call twice: the second while the first is waiting, or instead of the first, once its progress is complete.
async function twice(call, first) {
  const progress = [];
  const stop = new AbortController();
  let second;
  const onprogress = (step) => {
    progress.push(step);
    if (step.progress !== step.total) return;
    if (first === "abort") stop.abort("no longer wanted");
    second = attempt(call);
  };
  const outcome = await attempt(call, { onprogress, signal: stop.signal });
  return { first: outcome, second: await second, progress };
}

await client.connect(transport);
doing = "listing tools";
const listed = await client.listTools();
doing = "calling tools";
const calls = [];
for (const call of plan.calls) calls.push(await attempt(call));
const together = await Promise.all(plan.together.map((call) => attempt(call)));
const made = plan.twice ? await twice(plan.twice, plan.first) : null;
doing = "waiting for a changed list";
const changed = plan.hears ? await heard : null;
const report = {
  version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null,
  server: client.getServerVersion() ?? null,
  capabilities: client.getServerCapabilities() ?? null,
  instructions: client.getInstructions() ?? null,
  tools: listed.tools,
  calls,
  together,
  twice: made,
  changed,
  elicited,
  problems,
};
doing = "closing";
await client.close();
report.stderr = Buffer.concat(said).toString();
process.stdout.write(JSON.stringify(report) + "\n");
