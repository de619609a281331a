"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const made = (tag, parent, text = "") => {
    const node = document.createElement(tag);
    node.textContent = text;
    parent.append(node);
    return node;
  };

  // Print everything, if that is asked for: folded parts too.
  const whole = document.getElementById("whole");
  addEventListener("beforeprint", () => whole?.checked && all("details:not([open])").forEach((node) => { node.open = true; node.dataset.folded = ""; }));
  addEventListener("afterprint", () => all("details[data-folded]").forEach((node) => { node.open = false; delete node.dataset.folded; }));

  // Enlarge: every sample opens large, with its neighbors by the arrow keys. Beside it stands its nearest reference
  // sample; a suspected copy lies on its original, and a slider or blinking uncovers one or the other.
  const pictures = all(".tiles img, .copies img, .suspects img, .lead img, .stacked img").filter((one) => !one.classList.contains("strip"));
  if (pictures.length) {
    const dialog = document.createElement("dialog");
    dialog.className = "large";
    dialog.setAttribute("aria-label", "A sample, enlarged");
    const views = made("div", dialog);
    views.className = "views";
    const [own, other] = ["", ""].map(() => {
      const figure = made("figure", views);
      return { figure, image: made("img", figure), text: made("figcaption", figure) };
    });
    const tools = made("p", dialog);
    const label = made("label", tools, "Uncover the original ");
    const slider = made("input", label);
    Object.assign(slider, { type: "range", min: 0, max: 100 });
    const button = (name, parent, act) => {
      const node = made("button", parent, name);
      node.type = "button";
      node.addEventListener("click", act);
      return node;
    };
    const uncover = (percent) => { other.image.style.clipPath = `inset(0 ${100 - percent}% 0 0)`; };
    let blinking = 0;
    const still = () => { clearInterval(blinking); blinking = 0; blink.setAttribute("aria-pressed", false); };
    const swap = () => { slider.value = slider.value > 50 ? 0 : 100; uncover(slider.value); };
    const blink = button("Blink", tools, () => {
      const on = !blinking;
      still();
      swap();
      if (on && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
        blinking = setInterval(swap, 600);
        blink.setAttribute("aria-pressed", true);
      }
    });
    slider.addEventListener("input", () => { still(); uncover(slider.value); });
    const keys = made("p", dialog);
    button("Previous", keys, () => show(at - 1));
    button("Next", keys, () => show(at + 1));
    button("Close", keys, () => dialog.close()).autofocus = true;
    let at = 0;
    const shown = () => pictures.filter((one) => one.checkVisibility());
    // Clips stand still until the pointer or the focus is on them, and move when they are enlarged.
    const previews = JSON.parse(document.getElementById("previews")?.textContent || "{}");
    const moving = (one) => previews[one.dataset.moving] || one.src;
    const calm = matchMedia("(prefers-reduced-motion: reduce)");
    all("img[data-moving]").forEach((one) => {
      const source = one.src;
      ["mouseenter", "focus"].forEach((event) => one.addEventListener(event, () => { if (!calm.matches) one.src = moving(one); }));
      ["mouseleave", "blur"].forEach((event) => one.addEventListener(event, () => { one.src = source; }));
    });
    const fill = (view, one, scale, text) => {
      Object.assign(view.image, { src: moving(one), alt: one.alt, className: one.className });
      view.image.width = one.naturalWidth * scale;
      view.image.height = one.naturalHeight * scale;
      view.text.textContent = text;
    };
    const show = (place) => {
      const list = shown();
      at = (place + list.length) % list.length;
      const one = list[at];
      const pair = one.closest(".suspects li, .stacked");
      const original = pair && pair.querySelector(".train img");
      const copy = pair && pair.querySelector(".gen img");
      const paired = Boolean(original && copy);
      const near = paired ? original : document.querySelector(`img[data-id="${CSS.escape(one.dataset.near || "")}"]`);
      const first = paired ? copy : one;
      const beside = near && !paired ? 2 : 1;
      const [width, height] = [first.naturalWidth, first.naturalHeight];
      const scale = Math.max(1, Math.floor(Math.min(innerWidth * 0.8 / width / beside, innerHeight * 0.55 / height, 400 / Math.max(width, height))));
      fill(own, first, scale, paired ? "generated: " + first.title : first.title);
      other.figure.hidden = !near;
      if (near) fill(other, near, scale, paired ? "original: " + near.title : "nearest reference sample: " + near.title);
      if (paired) {
        other.image.width = own.image.width;
        other.image.height = own.image.height;
      }
      still();
      slider.value = 50;
      uncover(paired ? 50 : 100);
      views.classList.toggle("over", paired);
      tools.hidden = !paired;
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
      if (event.target === slider) return;
      if (event.key === "ArrowRight") show(at + 1);
      else if (event.key === "ArrowLeft") show(at - 1);
      else return;
      event.preventDefault();
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("close", () => { still(); shown()[at]?.focus({ preventScroll: true }); });
  }

  // A map and the list beside it: what the pointer is on is marked in both; a click leads from the map to the card.
  const marks = (name, on) => all(`.map [data-mode="${CSS.escape(name)}"], .forest [data-mode="${CSS.escape(name)}"]`)
    .forEach((node) => node.classList.toggle("marked", on));
  all(".map [data-mode], .forest tbody[data-mode]").forEach((node) => {
    node.addEventListener("mouseenter", () => marks(node.dataset.mode, true));
    node.addEventListener("mouseleave", () => marks(node.dataset.mode, false));
    if (node.closest(".map")) node.addEventListener("click", () => { location.hash = node.dataset.mode; });
  });

  // A click on a heading sorts the rows of a board by its numbers; another turns them round. What has no number is last.
  for (const table of all("table.board")) {
    const heads = all("thead th", table);
    heads.forEach((head, place) => {
      const text = (row) => row.cells[place].textContent.trim();
      const number = (row) => parseFloat(text(row).replace("\u2212", "-"));
      const button = made("button", head);
      button.type = "button";
      button.append(...[...head.childNodes].filter((node) => node !== button));
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows];
        const empty = (row) => place && Number.isNaN(number(row));
        const order = (a, b) => (place ? number(a) - number(b) : text(a).localeCompare(text(b))) * (down ? -1 : 1);
        rows.sort((a, b) => empty(a) - empty(b) || (empty(a) ? 0 : order(a, b)));
        table.tBodies[0].append(...rows);
      });
    });
  }

  // Sort, filter and find modes; the choice is in the address.
  const tools = document.querySelector("form.tools");
  const cards = tools ? all(".card", tools.parentNode) : [];
  const homes = new Map(cards.map((card) => [card, card.parentNode]));
  if (tools && cards.length > 1) {
    tools.hidden = false;
    const rows = new Map(all("[data-mode]").map((row) => [row.dataset.mode, row]));
    const fields = ["q", "role", "sort"].map((name) => tools.elements[name]);
    const title = (card) => card.querySelector("h3").textContent;
    const orders = {
      "": (a, b) => cards.indexOf(a) - cards.indexOf(b),
      p: (a, b) => a.dataset.p - b.dataset.p,
      name: (a, b) => title(a).localeCompare(title(b)),
    };
    const wordsOf = (card) => {
      const own = card.cloneNode(true);
      all(".card", own).forEach((node) => node.remove());
      return own.textContent.toLowerCase();
    };
    const words = new Map(cards.map((card) => [card, wordsOf(card)]));
    const output = tools.querySelector("output");
    const apply = () => {
      const [q, role, sort] = fields.map((field) => field.value);
      const flat = q || role || sort; // else kinds lie folded in the card of their heading
      const found = [...cards].sort(orders[sort] || ((a, b) => b.dataset[sort] - a.dataset[sort]));
      let count = 0;
      for (const card of found) {
        const hide = (role && card.dataset.role !== role) || q.toLowerCase().split(/\s+/).some((word) => !words.get(card).includes(word));
        card.hidden = hide;
        count += !hide;
        (flat ? tools.parentNode : homes.get(card)).append(card);
        const row = rows.get(card.id);
        if (row) row.hidden = hide;
        if (row?.tagName === "TR") row.parentNode.append(row);
      }
      // A heading stays where a kind below it does.
      for (const row of rows.values()) row.hidden &&= !all("[data-mode]:not([hidden])", row).length;
      output.textContent = `${count === cards.length ? "" : `${count} of `}${cards.length} ${output.dataset.things}`;
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
