import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin, type ProxyOptions } from 'vite';

// `LONGWIRE_URL=http://127.0.0.1:PORT npm run dev` serves the page for a run
// that was started with --view: the address that it printed, up to the token,
// which goes behind the address of this server.
const url = process.env['LONGWIRE_URL'];

const toRun: ProxyOptions = {
  target: url ?? '',
  changeOrigin: true,
  configure: (proxy) => {
    // The run refuses pages of other origins, which this server's is.
    proxy.on('proxyReq', (request) => request.removeHeader('origin'));
  },
};

/** The licences of what the page contains, which have to go with every copy of it. */
const licences: Plugin = {
  name: 'licences',
  generateBundle() {
    const texts = ['preact', 'uplot'].map((name) => {
      const text = readFileSync(new URL(`./node_modules/${name}/LICENSE`, import.meta.url), 'utf8');
      return `${name}\n\n${text.trim()}\n`;
    });
    const source = texts.join(`\n${'-'.repeat(72)}\n\n`);
    this.emitFile({ type: 'asset', fileName: 'assets/licences.txt', source });
  },
};

/** The program names each file: a change of the page is then a change of contents alone. */
const names = {
  entryFileNames: 'assets/[name].js',
  chunkFileNames: 'assets/[name].js',
  assetFileNames: 'assets/[name][extname]',
};

export default defineConfig({
  base: './',
  plugins: [licences],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    // Committed: the program is built without Node.
    outDir: '../crates/longwire/page',
    emptyOutDir: true,
    target: 'es2022',
    // No data: URLs: the policy of the page allows files only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { output: names },
  },
  worker: { format: 'es', rollupOptions: { output: names } },
  server: url ? { proxy: { '/v1': toRun } } : {},
  preview: url ? { proxy: { '/v1': toRun } } : {},
});
