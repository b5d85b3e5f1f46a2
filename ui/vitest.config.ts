import { defineConfig } from 'vitest/config';

export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  test: {
    // Only against hangs: tests of pure code have no limit of time.
    testTimeout: 120_000,
    include: ['test/unit/**/*.test.ts'],
    environment: 'node',
  },
});
