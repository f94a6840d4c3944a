// AgentFS's own TypeScript SDK at work on a file: `node agentfs.mjs make|use|old FILE`, run where the SDK is installed.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
const require = createRequire(process.cwd() + '/');
const { AgentFS } = await import(pathToFileURL(require.resolve('agentfs-sdk')).href);
const [what, path] = process.argv.slice(2);
const agent = await AgentFS.open({ path });
const large = Buffer.alloc(150000, 'sdk-');
const expect = (ok, text) => { if (!ok) { console.error('not so: ' + text); process.exit(1); } };
const fails = async (promise) => promise.then(() => false, () => true);

if (what === 'make') {
  await agent.fs.mkdir('/dir');
  await agent.fs.writeFile('/dir/large', large);
  await agent.fs.writeFile('/text.txt', 'hello from the sdk');
  await agent.fs.symlink('/text.txt', '/link');
  await agent.kv.set('answer', { n: 42 });
  await agent.kv.set('list', [1, 'two', null]);
  await agent.kv.set('gone', true);
  await agent.kv.delete('gone');
  const id = await agent.tools.start('search', { q: 'x' });
  await agent.tools.success(id, { hits: 3 });
  await agent.tools.record('broken', 1700000000, 1700000001, { a: 1 }, undefined, 'it failed');
} else if (what === 'use') {
  expect((await agent.fs.readdir('/')).sort().join() === 'dir,full,gone,hard,hollow,link,old', 'listing ' + await agent.fs.readdir('/'));
  expect((await agent.fs.readFile('/dir/large')).equals(Buffer.alloc(200000, 'ours')), 'large file');
  expect((await agent.fs.readFile('/hard', 'utf8')) === 'small', 'hard link');
  expect((await agent.fs.readlink('/link')) === 'dir/large', 'symbolic link');
  expect((await agent.fs.lstat('/link')).isSymbolicLink(), 'type of the link');
  expect((await agent.fs.stat('/dir/large')).size === 200000, 'size');
  expect((await agent.fs.stat('/dir')).isDirectory(), 'type of the directory');
  expect((await agent.kv.get('key')).n === 1, 'key');
  expect((await agent.kv.list('k')).length === 1, 'keys');
  await agent.kv.delete('doomed');
  expect((await agent.kv.get('doomed')) === undefined, 'deleted key');
  await agent.kv.set('key', { n: 2 });
  const calls = await agent.tools.getByName('bash');
  expect(calls.length === 1 && calls[0].status === 'success' && calls[0].result.exitCode === 0, 'call');
  expect((await agent.tools.getByName('python'))[0].error === 'NameError', 'failed call');
  expect((await agent.tools.getRecent(0)).length === 2, 'recent calls');
  expect((await agent.tools.getStats()).length === 2, 'statistics');
  // Our directories have Linux's link counts: removing, filling and moving them must still work.
  await agent.fs.rmdir('/hollow/inner');
  await agent.fs.rmdir('/hollow');
  expect(await fails(agent.fs.rmdir('/full')), 'a directory that is not empty stays');
  await agent.fs.rename('/full', '/moved');
  await agent.fs.mkdir('/moved/new');
  await agent.fs.rm('/moved/sub', { recursive: true });
  await agent.fs.writeFile('/dir/new', large);
  await agent.fs.writeFile('/hard', 'rewritten');
  await agent.fs.unlink('/gone');
  await agent.fs.rename('/old', '/renamed');
  await agent.kv.set('from-sdk', 'text');
  const id = await agent.tools.start('unfinished', {});
  await agent.tools.error(id, 'gave up');
  await agent.tools.record('later', 1700000000, 1700000002, {}, { ok: true });
} else {
  // An export in the older layout, read by the SDK that LocalSandbox has.
  expect((await agent.fs.readdir('/')).sort().join() === 'dir,link', 'listing ' + await agent.fs.readdir('/'));
  expect((await agent.fs.readFile('/dir/large')).equals(Buffer.alloc(200000, 'ours')), 'large file');
  expect((await agent.fs.readFile('/link', 'utf8')) === '{"__symlink":"dir/large"}', 'symbolic link as a file');
  expect((await agent.kv.get('key')).n === 1, 'key');
  const calls = await agent.tools.getRecent(0);
  expect(calls.length === 1 && calls[0].started_at > 1e12, 'call in milliseconds ' + JSON.stringify(calls));
  await agent.fs.writeFile('/dir/new', large);
  await agent.fs.writeFile('/alias', '{"__symlink":"dir/new"}');
  await agent.fs.unlink('/link');
  await agent.kv.set('from-sdk', 'text');
  await agent.tools.record('bash', 1700000000123, 1700000000456, { command: 'ls' }, { exitCode: 0 });
}
await agent.close();
