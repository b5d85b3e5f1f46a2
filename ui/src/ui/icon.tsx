const paths = {
  good: 'M3.5 8.5l3 3 6-7',
  bad: 'M8 2.5l6.2 11H1.8zM8 6.5v3.2M8 11.6v.1',
  on: 'M8 4a4 4 0 100 8a4 4 0 000-8',
  off: 'M4 4l8 8M12 4l-8 8',
  paused: 'M5.5 3v10M10.5 3v10',
  theme: 'M8 2a6 6 0 100 12zM8 2a6 6 0 010 12',
  link: 'M2 8h3l1.5-4 3 8L11 8h3',
  close: 'M4 4l8 8M12 4l-8 8',
  arrowUp: 'M8 12V4M5 7l3-3 3 3',
  arrowDown: 'M8 4v8M5 9l3 3 3-3',
  sort: 'M5 6l3-3 3 3M5 10l3 3 3-3',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, filled }: { name: IconName; filled?: boolean }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} class={filled ? 'filled' : ''} />
    </svg>
  );
}
