import js from "@eslint/js";
import globals from "globals";
import ts from "typescript-eslint";

export default [
  { ignores: ["dist/"] },
  js.configs.recommended,
  ...ts.configs.recommended,
  {
    rules: {
      "no-control-regex": "off", // texts of agents hold such characters
      "@typescript-eslint/no-non-null-assertion": "off",
    },
  },
  { files: ["*.mjs"], languageOptions: { globals: globals.node } },
];
