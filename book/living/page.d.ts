// What scripts find in a page: the loader's global (book/_static/living.js), and what TypeScript's library doesn't know of browsers.
declare const living: {
  load(name: "models"): Promise<typeof import("./models.js")>;
  load(name: "take"): Promise<typeof import("./take.js")>;
  load(name: string): Promise<any>; // data
  source(name: string): string;
};

interface Navigator {
  connection?: { saveData: boolean };
}
