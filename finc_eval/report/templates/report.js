"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const made = (tag, parent, text = "") => {
    const node = document.createElement(tag);
    node.textContent = text;
    parent.append(node);
    return node;
  };

  // Print everything: folded parts too.
  addEventListener("beforeprint", () => all("details:not([open])").forEach((node) => { node.open = true; node.dataset.folded = ""; }));
  addEventListener("afterprint", () => all("details[data-folded]").forEach((node) => { node.open = false; delete node.dataset.folded; }));

  // Enlarge: every sample opens large, with its neighbors by the arrow keys.
  const pictures = all(".tiles img, .copies img, .suspects img");
  if (pictures.length) {
    const dialog = document.createElement("dialog");
    dialog.className = "large";
    dialog.setAttribute("aria-label", "A sample, enlarged");
    const image = made("img", dialog);
    const text = made("p", dialog);
    const keys = made("p", dialog);
    const buttons = [["Previous", -1], ["Next", 1], ["Close", 0]].map(([name, step]) => {
      const button = made("button", keys, name);
      button.type = "button";
      button.addEventListener("click", () => (step ? show(at + step) : dialog.close()));
      return button;
    });
    let at = 0;
    const shown = () => pictures.filter((one) => one.checkVisibility());
    const show = (place) => {
      const list = shown();
      at = (place + list.length) % list.length;
      const one = list[at];
      image.src = one.src;
      image.alt = one.alt;
      image.className = one.className;
      const [width, height] = [one.naturalWidth, one.naturalHeight];
      const scale = Math.max(1, Math.floor(Math.min(innerWidth * 0.8 / width, innerHeight * 0.6 / height, 400 / Math.max(width, height))));
      image.width = width * scale;
      image.height = height * scale;
      text.textContent = one.title;
      if (!dialog.isConnected) document.body.append(dialog);
      if (!dialog.open) dialog.showModal();
    };
    pictures.forEach((one) => {
      one.tabIndex = 0;
      one.setAttribute("role", "button");
      const open = () => show(shown().indexOf(one));
      one.addEventListener("click", open);
      one.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); }
      });
    });
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight") show(at + 1);
      else if (event.key === "ArrowLeft") show(at - 1);
      else return;
      event.preventDefault();
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("close", () => shown()[at]?.focus({ preventScroll: true }));
    buttons[2].autofocus = true;
  }

  // Sort, filter and find modes; the choice is in the address.
  const tools = document.querySelector("form.tools");
  const cards = all(".cards > .card");
  if (tools && cards.length > 1) {
    tools.hidden = false;
    const rows = new Map(all("#forest tbody tr").map((row) => [row.dataset.mode, row]));
    const fields = ["q", "role", "sort"].map((name) => tools.elements[name]);
    const title = (card) => card.querySelector("h3").textContent;
    const orders = {
      "": (a, b) => cards.indexOf(a) - cards.indexOf(b),
      gen: (a, b) => b.dataset.gen - a.dataset.gen,
      ref: (a, b) => b.dataset.ref - a.dataset.ref,
      p: (a, b) => a.dataset.p - b.dataset.p,
      name: (a, b) => title(a).localeCompare(title(b)),
    };
    const words = new Map(cards.map((card) => [card, card.textContent.toLowerCase()]));
    const apply = () => {
      const [q, role, sort] = fields.map((field) => field.value);
      const found = [...cards].sort(orders[sort] || orders[""]);
      let count = 0;
      for (const card of found) {
        const hide = (role && card.dataset.role !== role) || q.toLowerCase().split(/\s+/).some((word) => !words.get(card).includes(word));
        card.hidden = hide;
        count += !hide;
        tools.parentNode.append(card);
        const row = rows.get(card.id);
        if (row) { row.hidden = hide; row.parentNode.append(row); }
      }
      tools.querySelector("output").textContent = count === cards.length ? `${count} modes` : `${count} of ${cards.length} modes`;
    };
    const read = () => {
      const target = document.getElementById(location.hash.slice(1));
      if (!target) {
        const state = new URLSearchParams(location.hash.slice(1));
        fields.forEach((field) => { field.value = state.get(field.name) || ""; if (field.selectedIndex === -1) field.value = ""; });
      } else if (target.hidden) {
        fields.forEach((field) => { field.value = ""; });
      }
      apply();
      if (target) {
        for (let node = target.parentElement; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
        target.scrollIntoView();
      }
    };
    tools.addEventListener("input", () => {
      const state = new URLSearchParams(fields.filter((field) => field.value).map((field) => [field.name, field.value]));
      history.replaceState(null, "", "#" + state);
      apply();
    });
    tools.addEventListener("submit", (event) => event.preventDefault());
    addEventListener("hashchange", read);
    read();
  }
})();
