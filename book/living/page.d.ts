// What scripts find in a page: the loader's global (book/_static/living.js), and what TypeScript's library doesn't know of browsers.
declare const living: {
  load(name: string): Promise<any>;
  source(name: string): string;
};

interface Navigator {
  connection?: { saveData: boolean };
}
