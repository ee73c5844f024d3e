import { defineConfig } from "vite";

// No inlined files and no polyfill: the page's policy lets it load its own files and nothing else.
export default defineConfig({
  base: "/",
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
});
