// A process that makes runs of the benchmark's loop with LangGraph.js and its PostgreSQL
// checkpointer. It takes the orders of bench/worker on standard input, one a line, and
// answers each with one line of JSON:
//   load W MS    W runs at a time for MS milliseconds
// Usage: node loop.mjs URL STEPS DURABILITY, where DURABILITY is sync (a checkpoint is
// durable before the next step begins, as with agentd) or async, LangGraph's default.
import { createInterface } from "node:readline";
import { randomUUID } from "node:crypto";
import { AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";

const [url, stepsText, durability] = process.argv.slice(2);
const steps = Number(stepsText);

const echo = tool(async ({ text }) => text, {
	name: "echo",
	description: "Gives back the text it is given.",
	schema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
});

// The model is a script in the process: it calls the tool so many times and then answers.
async function model({ messages }) {
	const n = messages.filter((m) => m.getType() === "tool").length;
	if (n === steps) {
		return { messages: [new AIMessage("All of it was echoed.")] };
	}
	return { messages: [new AIMessage({ content: "", tool_calls: [{ id: `c${n}`, name: "echo", args: { text: `step ${n}` }, type: "tool_call" }] })] };
}

const saver = PostgresSaver.fromConnString(url);
await saver.setup();
const graph = new StateGraph(MessagesAnnotation)
	.addNode("agent", model)
	.addNode("tools", new ToolNode([echo]))
	.addEdge("__start__", "agent")
	.addConditionalEdges("agent", ({ messages }) => (messages.at(-1).tool_calls?.length ? "tools" : "__end__"))
	.addEdge("tools", "agent")
	.compile({ checkpointer: saver });

async function run() {
	const out = await graph.invoke(
		{ messages: [new SystemMessage("You are a careful assistant."), new HumanMessage("Please echo what you are told to, step by step.")] },
		{ configurable: { thread_id: randomUUID() }, recursionLimit: 4 * steps + 10, durability },
	);
	if (out.messages.length !== 2 * steps + 3) {
		throw new Error(`a run ended with ${out.messages.length} messages`);
	}
}

for await (const line of createInterface({ input: process.stdin })) {
	const [order, width, ms] = line.split(" ");
	const report = { runs: 0 };
	const began = performance.now();
	const cpu = process.cpuUsage();
	try {
		if (order !== "load") {
			throw new Error(`unknown order ${line}`);
		}
		const end = began + Number(ms);
		await Promise.all(
			Array.from({ length: Number(width) }, async () => {
				while (performance.now() < end) {
					await run();
					report.runs++;
				}
			}),
		);
	} catch (e) {
		report.error = String(e?.stack ?? e);
	}
	const used = process.cpuUsage(cpu);
	report.elapsed_us = (performance.now() - began) * 1000;
	report.cpu_us = used.user + used.system;
	process.stdout.write(JSON.stringify(report) + "\n");
}
await saver.end();
