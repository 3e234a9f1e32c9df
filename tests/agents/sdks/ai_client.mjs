// Ask as Vercel's AI SDK does: node ai_client.mjs URL QUESTION MODULES
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

globalThis.AI_SDK_LOG_WARNINGS = false;
const [url, question, modules] = process.argv.slice(2);
const resolver = createRequire(`${modules}/of.js`);
const load = async (name) => import(pathToFileURL(resolver.resolve(name)).href);
const { generateText, streamText, tool, jsonSchema, stepCountIs } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");

const look = tool({
  inputSchema: jsonSchema({ type: "object", properties: { question: { type: "string" } } }),
  execute: async () => "42",
});
const settings = { baseURL: `${url}/v1`, apiKey: "x" };
for (const model of [createOpenAI(settings).chat("m"), createAnthropic(settings)("m")]) {
  console.log((await generateText({ model, prompt: question })).text);
  const steps = { model, prompt: question, tools: { look }, stopWhen: stepCountIs(3) };
  let text = "";
  for await (const part of streamText(steps).textStream) text += part;
  console.log(text);
}
