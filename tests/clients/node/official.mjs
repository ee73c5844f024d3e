// The official client for Node, unchanged, against the server at the address it is given. What it saw is printed as JSON.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0, timeout: 60_000 });
const model = "lastword";
// A model that refuses a short question for its length would be taken to see next to nothing from then on.
const tooLong = `Too long${" and longer".repeat(2000)}.`;
const seen = {};

async function say(content) {
  const answer = await client.chat.completions.create({ model, messages: [{ role: "user", content }] });
  return answer.choices[0].message.content;
}

seen.chat = await say("Say hello.");

const stream = await client.chat.completions.create({
  model,
  messages: [{ role: "user", content: "Count." }],
  stream: true,
});
seen.stream = [];
for await (const chunk of stream) {
  const piece = chunk.choices[0]?.delta?.content;
  if (piece) seen.stream.push(piece);
}

const parameters = { type: "object", properties: { city: { type: "string" } } };
const tools = [{ type: "function", function: { name: "weather", parameters } }];
const history = [{ role: "user", content: "Weather?" }];
const asked = await client.chat.completions.create({ model, messages: history, tools });
const call = asked.choices[0].message.tool_calls[0];
history.push(asked.choices[0].message, { role: "tool", tool_call_id: call.id, content: "18°C" });
const told = await client.chat.completions.create({ model, messages: history, tools });
seen.tools = [call.function.name, JSON.parse(call.function.arguments), told.choices[0].message.content];

const first = await client.responses.create({ model, input: "Say hello." });
const second = await client.responses.create({ model, input: "Again.", previous_response_id: first.id });
seen.responses = [first.output_text, second.output_text];

seen.responses_stream = [];
for await (const event of await client.responses.create({ model, input: "Count.", stream: true })) {
  if (event.type === "response.output_text.delta") seen.responses_stream.push(event.delta);
}

const functions = [{ type: "function", name: "weather", parameters, strict: false }];
const running = client.responses.stream({ model, input: "Weather?", tools: functions });
const wanted = await running.finalResponse();
const item = wanted.output.find((entry) => entry.type === "function_call");
const output = { type: "function_call_output", call_id: item.call_id, output: "18°C" };
const answered = await client.responses.create({
  model,
  input: [output],
  previous_response_id: wanted.id,
  tools: functions,
});
seen.responses_tools = [item.name, JSON.parse(item.arguments), answered.output_text];

const slow = say("Slow.");
seen.at_once = [await say("Fast."), await say("Open.")];
seen.at_once.push(await slow);

seen.errors = [];
for (const ask of [() => say(tooLong), () => client.responses.create({ model, input: tooLong })]) {
  try {
    await ask();
  } catch (problem) {
    seen.errors.push([problem instanceof OpenAI.BadRequestError, problem.code]);
  }
}

console.log(JSON.stringify(seen));
