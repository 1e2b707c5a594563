// Requests to the server, with the session token.

const STORE = "clinveil-review";

export class Refused extends Error {}

/** Exchange the one-time token in the fragment for a session token, stored until the tab is closed. */
export async function enter() {
  const token = location.hash.slice(1);
  if (token) {
    history.replaceState(null, "", location.pathname);
    const { session } = await ask("enter", { word: token });
    sessionStorage.setItem(STORE, session);
  }
}

export async function ask(name, body = {}) {
  let answer;
  try {
    answer = await fetch(`/api/${name}`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Authorization: `Bearer ${sessionStorage.getItem(STORE) ?? ""}`,
      },
      body: JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
    });
  } catch {
    throw new Refused("The server does not respond. Steps shown as saved are stored. Start clinveil review again and open the printed address.");
  }
  const result = await answer.json();
  if (!answer.ok) throw new Refused(result.refused ?? "refused");
  return result;
}
