/** Hands a file that the page has made to the browser. */
export function download(name: string, contents: Blob | string, type = 'text/plain'): void {
  const blob = typeof contents === 'string' ? new Blob([contents], { type }) : contents;
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A name of a link as part of a name of a file. */
export function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, '-');
}
