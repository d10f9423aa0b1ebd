import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["dist/"] },
  js.configs.recommended,
  { rules: { "no-control-regex": "off" } }, // texts of agents hold such characters
  { files: ["src/**"], languageOptions: { globals: globals.browser } },
  { files: ["*.mjs"], languageOptions: { globals: globals.node } },
];
