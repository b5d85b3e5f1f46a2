/** Returns whether a name matches a pattern; `*` matches any text, `?` one character. */
export function fits(pattern: string, name: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 's').test(name);
}

/** Returns whether a name in a change selects a direction such as `a.up`. */
export function concerns(pattern: string, direction: string): boolean {
  const [, names = pattern, side] = /^(.*)\.(up|down)$/s.exec(pattern) ?? [];
  const at = direction.lastIndexOf('.');
  if (side !== undefined && side !== direction.slice(at + 1)) return false;
  return fits(names, direction.slice(0, at));
}
