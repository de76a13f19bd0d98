// Explorers are pages in a frame: each tells how tall it is, and gets that height.
window.addEventListener("message", (event) => {
  const height = Number(event.data?.replenishHeight);
  for (const frame of document.querySelectorAll(".explorer iframe")) {
    if (frame.contentWindow === event.source && height > 0) frame.style.height = `${Math.min(height, 6000) + 2}px`;
  }
});
