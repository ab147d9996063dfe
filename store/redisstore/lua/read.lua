-- KEYS lease, bucket
-- ARGV lease or nothing, bytes and records of a page, then the keys wanted; none: all, where they fit into a page
-- Returns {ok, keys, values} or {lost}. Keys beyond the page have no value; a key without a record has nil.

local err = foreign(KEYS[1], 'string') or foreign(KEYS[2], 'hash')
if err then
  return err
end
if ARGV[1] ~= '' and redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {'lost'}
end
local keys, values, size = {}, {}, 0
if #ARGV > 3 then
  for i = 4, #ARGV do
    keys[i - 3] = ARGV[i]
  end
else
  keys = redis.call('HKEYS', KEYS[2])
  if #keys > tonumber(ARGV[3]) then
    return {'ok', keys, values}
  end
end
for i, key in ipairs(keys) do
  values[i] = redis.call('HGET', KEYS[2], key)
  size = size + #(values[i] or '')
  if size >= tonumber(ARGV[2]) then
    break
  end
end
return {'ok', keys, values}
