import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig } from "vite";

// Compressed once, here, as well as it can be: the server only chooses (web/endpoints.py).
const compressed = {
  name: "compressed",
  writeBundle({ dir }, bundle) {
    for (const name of Object.keys(bundle).filter((name) => name.startsWith("assets/"))) {
      const data = readFileSync(join(dir, name));
      const ways = {
        gz: gzipSync(data, { level: constants.Z_BEST_COMPRESSION }),
        br: brotliCompressSync(data, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }),
      };
      for (const [ending, smaller] of Object.entries(ways)) {
        if (smaller.length < data.length) writeFileSync(join(dir, `${name}.${ending}`), smaller);
      }
    }
  },
};

// No inlined files and no polyfill: the page's policy lets it load its own files and nothing else.
export default defineConfig({
  base: "/",
  plugins: [compressed],
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
});
