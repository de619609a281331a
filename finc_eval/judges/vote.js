"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = name => document.getElementById(name);
  const key = `finc-eval-vote-${data.id}`;
  const nobody = () => `voter-${[...crypto.getRandomValues(new Uint8Array(4))].map(b => b.toString(16).padStart(2, "0")).join("")}`;
  let state = {voter: nobody(), votes: []};
  // Kept in the browser, and in the tab's history, which lasts over a reload where a browser keeps nothing for files.
  const places = [
    {read: () => history.state?.[key], write: text => history.replaceState({[key]: text}, "")},
    {read: () => localStorage.getItem(key), write: text => localStorage.setItem(key, text)},
  ];
  const kept = place => { try { return JSON.parse(place.read() ?? null) } catch { return null } };
  for (const found of places.map(kept))
    if (Array.isArray(found?.votes) && state.votes.length <= found.votes.length && found.votes.length <= data.trials.length)
      state = found;

  const keep = () => {
    for (const place of places) try { place.write(JSON.stringify(state)) } catch { /* the other place keeps them */ }
  };

  // The same numbers as in vote_page.py: names are not for reading along.
  const decode = (text, salt) => {
    const bytes = Uint8Array.from(atob(text), one => one.charCodeAt(0));
    let mask = (Math.imul(salt, 2654435761) + 1) >>> 0;
    for (let i = 0; i < bytes.length; i++) {
      mask = (Math.imul(mask, 1664525) + 1013904223) >>> 0;
      bytes[i] ^= mask >>> 24;
    }
    return JSON.parse(new TextDecoder().decode(bytes));
  };

  const show = () => {
    const place = state.votes.length, total = data.trials.length, done = place >= total;
    at("progress").textContent = done ? `All ${total} votes are in: save them.` : `${place} of ${total} votes`;
    at("pair").hidden = at("choices").hidden = done;
    at("back").disabled = place === 0;
    at("save").disabled = place === 0;
    at("prompt").textContent = done ? "Thank you. Save your votes, and send the file to whoever asked you."
      : data.trials[place][5] ?? data.trials[place][0];
    if (!done) for (const [side, number] of [["left", 1], ["right", 2]]) {
      const image = at(side);
      image.onload = () => image.classList.toggle("small", Math.max(image.naturalWidth, image.naturalHeight) <= 64);
      image.src = data.pictures[data.trials[place][number]];
    }
  };

  const vote = choice => {
    if (state.votes.length >= data.trials.length) return;
    state.votes.push(choice);
    keep();
    show();
  };
  const back = () => { state.votes.pop(); keep(); show() };

  // As core/files/csv_text.py escapes: no cell begins as a formula does, and the reader takes the apostrophe off.
  const escape = text => data.formula.includes(text.replace(/^'+/, "")[0] ?? " ") ? `'${text}` : text;
  const cell = value => /[",\r\n]/.test(value) ? `"${escape(value).replaceAll('"', '""')}"` : escape(value);
  const csv = () => [data.columns, ...state.votes.map((choice, place) => {
    const [prompt, , , code, pair] = data.trials[place], [left, right] = decode(code, data.salt + place);
    return [prompt, left, right, {left, right, tie: "tie"}[choice], state.voter, pair].slice(0, data.columns.length);
  })].map(row => row.map(cell).join(",")).join("\n") + "\n";

  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], {type: "text/csv"}));
    link.download = `votes-${state.voter.replace(/[^\w-]+/g, "-")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  at("voter").value = state.voter;
  at("voter").addEventListener("input", event => { state.voter = event.target.value.trim() || nobody(); keep() });
  for (const side of ["left", "tie", "right"]) at(`choose-${side}`).addEventListener("click", () => vote(side));
  at("back").addEventListener("click", back);
  at("save").addEventListener("click", save);
  document.addEventListener("keydown", event => {
    if (event.target === at("voter") || event.ctrlKey || event.metaKey || event.altKey) return;
    const choice = {ArrowLeft: "left", ArrowRight: "right", ArrowDown: "tie"}[event.key];
    if (choice) { event.preventDefault(); vote(choice) }
    if (event.key === "Backspace") { event.preventDefault(); if (state.votes.length) back() }
  });
  show();
})();
