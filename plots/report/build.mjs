// Bundles src/ and what it uses of its libraries into one script and one style sheet, with the
// licences of all that went in.
//
//   node build.mjs MODULES OUT      MODULES: the node_modules that `npm ci` made
import {existsSync, readFileSync, readdirSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';

const [modules, out] = process.argv.slice(2).map((path) => resolve(path));
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(modules, 'esbuild', 'package.json'))('esbuild');

const result = await esbuild.build({
  absWorkingDir: here,
  entryPoints: {report: 'src/main.js'},
  bundle: true, minify: true, format: 'iife', target: 'es2020', charset: 'utf8',
  legalComments: 'inline', metafile: true, nodePaths: [modules], outdir: out, logLevel: 'warning',
});

// Which packages have code in the bundle; their texts of law lie at their root or in licenses/.
const used = new Set();
for (const file of Object.values(result.metafile.outputs).flatMap((o) =>
  Object.entries(o.inputs).filter(([, part]) => part.bytesInOutput > 0).map(([name]) => name))) {
  const inside = file.split('node_modules/').at(-1);
  if (inside !== file) {
    const parts = inside.split('/');
    used.add(parts[0].startsWith('@') ? parts.slice(0, 2).join('/') : parts[0]);
  }
}
const LEGAL = /^(licen[cs]e|notice|copying|copyright)/i;
const licences = [...used].sort().map((name) => {
  const root = join(modules, name);
  const about = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const files = ['', 'licenses/'].filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => readdirSync(join(root, folder), {withFileTypes: true})
      .filter((file) => file.isFile() && LEGAL.test(file.name))
      .map((file) => folder + file.name));
  if (files.length === 0) throw new Error(`${name} brings no licence text`);
  return {name, version: about.version, licence: about.license,
          texts: files.sort().map((file) => ({file, text: readFileSync(join(root, file), 'utf8')}))};
});
writeFileSync(join(out, 'licences.json'), JSON.stringify(licences, null, 1) + '\n');
