import { defineConfig } from "vite";

// Few files with fixed names: they are committed, and a page that needs no server holds them inline.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../static",
    emptyOutDir: true,
    modulePreload: false,
    cssCodeSplit: false,
    target: "es2022",
    rollupOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]", codeSplitting: false },
    },
  },
});
