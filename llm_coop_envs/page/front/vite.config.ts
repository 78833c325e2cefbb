import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { defineConfig } from "vite";

// What the build was made of stands beside it, so that a test without Node can tell whether it is the sources' own.
const hash = () => {
  const names = ["index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"];
  const all = [...names, ...readdirSync("src").map((name) => `src/${name}`)].sort();
  const sum = createHash("sha256");
  for (const name of all) sum.update(`${name}\n`).update(readFileSync(name));
  return sum.digest("hex");
};

// Few files with fixed names: they are committed, and a page that needs no server holds them inline.
export default defineConfig({
  base: "./",
  plugins: [
    {
      name: "sources",
      generateBundle() {
        this.emitFile({ type: "asset", fileName: "sources.txt", source: `${hash()}\n` });
      },
    },
  ],
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
