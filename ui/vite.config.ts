import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin, type ProxyOptions } from 'vite';

// `LONGWIRE_URL=http://127.0.0.1:PORT npm run dev` serves the page for a run with
// --view. PORT is from the run's URL; append the URL's token to this server's
// address.
const url = process.env['LONGWIRE_URL'];

const toRun: ProxyOptions = {
  target: url ?? '',
  changeOrigin: true,
  configure: (proxy) => {
    // The run refuses requests from other origins, such as this server's.
    proxy.on('proxyReq', (request) => request.removeHeader('origin'));
  },
};

/** The licences of the bundled packages, required in every copy of the page. */
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

/** Fixed file names, because the program embeds each file by name. */
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
    // The output is committed, so that the program is built without Node.
    outDir: '../crates/longwire/page',
    emptyOutDir: true,
    target: 'es2022',
    // No data: URLs, because the page's content security policy allows only files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { output: names },
  },
  worker: { format: 'es', rollupOptions: { output: names } },
  server: url ? { proxy: { '/v1': toRun } } : {},
  preview: url ? { proxy: { '/v1': toRun } } : {},
});
