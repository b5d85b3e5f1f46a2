// Fails if the compressed size of the built page exceeds the limit.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const limitBytes = 150 * 1024;
const root = new URL('../../crates/longwire/page', import.meta.url).pathname;

function filesOf(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesOf(path) : [path];
  });
}

let sum = 0;
for (const path of filesOf(root)) {
  const bytes = gzipSync(readFileSync(path), { level: 9 }).length;
  sum += bytes;
  console.log(`${String(bytes).padStart(8)} ${path.slice(root.length + 1)}`);
}
console.log(`${String(sum).padStart(8)} bytes compressed, of ${limitBytes} allowed`);
if (sum > limitBytes) {
  console.error('error: the page is too large');
  process.exit(1);
}
