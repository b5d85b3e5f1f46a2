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

export default defineConfig({
  base: './',
  plugins: [licences],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    // Nothing as data: URL, and a name for each file that does not change with the machine.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  worker: { format: 'es' },
  server: url ? { proxy: { '/v1': toRun } } : {},
  preview: url ? { proxy: { '/v1': toRun } } : {},
});
