import { render } from 'preact';
import { App } from './app';
import { clientOf, connect } from './data/connect';
import { ConnectionContext } from './data/use';
import { keepToken, takeToken } from './session';
import './styles/index.css';
import { applyTheme, storedTheme } from './theme';
import { NoToken } from './views/notoken';

async function start(): Promise<void> {
  applyTheme(storedTheme());
  const root = document.getElementById('app');
  if (!root) return;
  const taken = takeToken(location, history, sessionStorage);
  // Opening another URL of this page in the same tab only changes the fragment.
  window.addEventListener('hashchange', () => {
    if (takeToken(location, history, sessionStorage).given) location.reload();
  });
  const { source, token } = await connect(taken.token, taken.given);
  if (!token) {
    render(<NoToken />, root);
    return;
  }
  keepToken(token, sessionStorage);
  render(
    <ConnectionContext.Provider value={{ source, client: clientOf(token) }}>
      <App />
    </ConnectionContext.Provider>,
    root,
  );
}

void start();
