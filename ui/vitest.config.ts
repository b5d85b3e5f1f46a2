import { defineConfig } from 'vitest/config';

export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  test: {
    // Only guards against hangs.
    testTimeout: 120_000,
    include: ['test/unit/**/*.test.ts'],
    environment: 'node',
  },
});
