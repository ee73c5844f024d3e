// The AI SDK with its provider for OpenAI, unchanged: by default it speaks the responses form, and sends its history.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const provider = createOpenAI({ baseURL: process.argv[2], apiKey: "none" });
const models = { chat: provider.chat("lastword"), responses: provider.responses("lastword") };
// A model that refuses a short question for its length would be taken to see next to nothing from then on.
const tooLong = `Too long${" and longer".repeat(2000)}.`;
const seen = { chat: {}, responses: {} };

for (const [form, model] of Object.entries(models)) {
  const say = async (prompt) => (await generateText({ model, prompt, maxRetries: 0 })).text;
  seen[form].text = await say("Say hello.");

  seen[form].stream = [];
  for await (const piece of streamText({ model, prompt: "Count.", maxRetries: 0 }).textStream) {
    seen[form].stream.push(piece);
  }

  for (const streamed of [false, true]) {
    const asked = [];
    const weather = tool({
      inputSchema: z.object({ city: z.string() }),
      execute: async (input) => {
        asked.push(input);
        return "18°C";
      },
    });
    const settings = { model, prompt: "Weather?", tools: { weather }, stopWhen: stepCountIs(3), maxRetries: 0 };
    const text = streamed ? await streamText(settings).text : (await generateText(settings)).text;
    seen[form][streamed ? "streamed_tools" : "tools"] = [...asked, text];
  }

  const slow = say(`Slow ${form}.`);
  seen[form].at_once = [await say("Fast."), await say(`Open ${form}.`)];
  seen[form].at_once.push(await slow);

  try {
    await say(tooLong);
  } catch (problem) {
    seen[form].error = [problem.statusCode, JSON.parse(problem.responseBody).error.code];
  }
}

// A second turn by the id of the first, and by the history that the SDK keeps: it names items of ours there.
const model = models.responses;
const first = await generateText({ model, prompt: "Say hello.", maxRetries: 0 });
const openai = { previousResponseId: first.providerMetadata.openai.responseId };
const byId = await generateText({ model, prompt: "Again.", providerOptions: { openai }, maxRetries: 0 });
const messages = [
  { role: "user", content: "Say hello." },
  ...first.response.messages,
  { role: "user", content: "Again." },
];
const byHistory = await generateText({ model, messages, maxRetries: 0 });
seen.again = [byId.text, byHistory.text];

console.log(JSON.stringify(seen));
