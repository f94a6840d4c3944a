// AgentFS's own TypeScript SDK at work on a file: `node agentfs.mjs make|use FILE`, run where the SDK is installed.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
const require = createRequire(process.cwd() + '/');
const { AgentFS } = await import(pathToFileURL(require.resolve('agentfs-sdk')).href);
const [what, path] = process.argv.slice(2);
const agent = await AgentFS.open({ path });
const large = Buffer.alloc(150000, 'sdk-');
const expect = (ok, text) => { if (!ok) { console.error('not so: ' + text); process.exit(1); } };

if (what === 'make') {
  await agent.fs.mkdir('/dir');
  await agent.fs.writeFile('/dir/large', large);
  await agent.fs.writeFile('/text.txt', 'hello from the sdk');
  await agent.fs.symlink('/text.txt', '/link');
  await agent.kv.set('answer', { n: 42 });
  const id = await agent.tools.start('search', { q: 'x' });
  await agent.tools.success(id, { hits: 3 });
  await agent.tools.record('broken', 1700000000, 1700000001, { a: 1 }, undefined, 'it failed');
} else {
  expect((await agent.fs.readdir('/')).sort().join() === 'dir,gone,hard,link,old', 'listing ' + await agent.fs.readdir('/'));
  expect((await agent.fs.readFile('/dir/large')).equals(Buffer.alloc(200000, 'ours')), 'large file');
  expect((await agent.fs.readFile('/hard', 'utf8')) === 'small', 'hard link');
  expect((await agent.fs.readlink('/link')) === 'dir/large', 'symbolic link');
  expect((await agent.fs.stat('/dir/large')).size === 200000, 'size');
  expect((await agent.kv.get('key')).n === 1, 'key');
  expect((await agent.kv.list('k')).length === 1, 'keys');
  const calls = await agent.tools.getByName('bash');
  expect(calls.length === 1 && calls[0].status === 'success' && calls[0].result.exitCode === 0, 'call');
  expect((await agent.tools.getRecent(0)).length === 1, 'recent calls');
  await agent.fs.writeFile('/dir/new', large);
  await agent.fs.writeFile('/hard', 'rewritten');
  await agent.fs.unlink('/gone');
  await agent.fs.rename('/old', '/renamed');
  await agent.kv.set('from-sdk', 'text');
  await agent.tools.record('later', 1700000000, 1700000002, {}, { ok: true });
}
await agent.close();
