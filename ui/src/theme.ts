import { useEffect, useState } from 'preact/hooks';

export type Theme = 'system' | 'light' | 'dark';

const key = 'longwire-theme';
const order: Theme[] = ['system', 'light', 'dark'];

export function storedTheme(): Theme {
  const stored = localStorage.getItem(key);
  return order.find((theme) => theme === stored) ?? 'system';
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.dataset['theme'] = theme;
}

export function nextTheme(theme: Theme): Theme {
  return order[(order.indexOf(theme) + 1) % order.length] ?? 'system';
}

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(storedTheme);
  const toggle = (): void => {
    const next = nextTheme(theme);
    localStorage.setItem(key, next);
    applyTheme(next);
    setTheme(next);
    window.dispatchEvent(new Event('themechange'));
  };
  return [theme, toggle];
}

/** Counts colour changes by the toggle and by the system. */
export function useThemeVersion(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const changed = (): void => setVersion((before) => before + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', changed);
    window.addEventListener('themechange', changed);
    return () => {
      system.removeEventListener('change', changed);
      window.removeEventListener('themechange', changed);
    };
  }, []);
  return version;
}

/** Returns the value of a custom property such as `--blue` in the current theme. */
export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
