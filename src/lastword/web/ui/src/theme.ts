// Light, dark, or as the system has it. Kept in this browser only.

export type Theme = "auto" | "light" | "dark";

export function themeNow(): Theme {
  const kept = localStorage.getItem("lastword-theme");
  return kept === "light" || kept === "dark" ? kept : "auto";
}

export function chooseTheme(theme: Theme): void {
  if (theme === "auto") localStorage.removeItem("lastword-theme");
  else localStorage.setItem("lastword-theme", theme);
  applyTheme();
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = themeNow();
}
