// What ui/build.mjs makes of the files of src/lastcall/ui/catalogue: each part of them, by language.

declare module "catalogue" {
  type English = typeof import("../../src/lastcall/ui/catalogue/en.json");
  type Named<Part> = Record<string, { [id: string]: Part }>;
  export const name: Record<string, string>;
  export const page: Record<string, English["page"]>;
  export const cluster: Record<string, English["cluster"]>;
  export const rollout: Record<string, English["rollout"]>;
  export const tour: Record<string, English["tour"]>;
  export const chapters: Named<string>;
  export const titles: Named<string>;
  export const steps: Named<{ title: string; text: string }>;
  export const claims: Named<{ says: string; seen: string }>;
}
