/** Offers a generated file as a download. */
export function download(name: string, contents: Blob | string, type = 'text/plain'): void {
  const blob = typeof contents === 'string' ? new Blob([contents], { type }) : contents;
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // By then the browser has started to read the file.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Converts a link name to part of a file name. */
export function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, '-');
}
