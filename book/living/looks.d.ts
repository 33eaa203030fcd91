/** For each scheme, what it is called and how its line looks; the build makes the module from the package's rows. */
export const LOOKS: Record<string, [name: string, look: string]>;
