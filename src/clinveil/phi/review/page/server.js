// Questions to the server of this page, one after another, with the word of the session.

const STORE = "clinveil-review";

export class Refused extends Error {}

/** Trade the one-time word behind the # for the session's, which lives as long as this tab. */
export async function enter() {
  const word = location.hash.slice(1);
  if (word) {
    history.replaceState(null, "", location.pathname);
    const { session } = await ask("enter", { word });
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
    throw new Refused("The server does not answer. What was said to be saved is saved; start clinveil review again and open the address that it prints.");
  }
  const said = await answer.json();
  if (!answer.ok) throw new Refused(said.refused ?? "refused");
  return said;
}
